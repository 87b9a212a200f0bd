// Ranks that another launcher has started, one for each process: they live for all worlds, as libraries need that can
// be started once (MPI).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "testing/ranks.hpp"
#include "tools/lib/job.hpp"

namespace ddprun::conformance {

class JobRanks {
 public:
  // Null if no launcher has started this process. Throws Error(rendezvous) if the ranks do not meet, or run something
  // else: `identity` must be equal on all.
  static std::unique_ptr<JobRanks> find(const std::string& identity);
  ~JobRanks();  // when all ranks have come so far

  int size() const { return job_->count(); }
  bool leads() const { return job_->leads(); }

  // As testing::run_ranks(), with the ranks of the job. Collective; gives the same on all ranks.
  std::vector<testing::Outcome> run(const std::function<void(testing::Rank&)>& body);

 private:
  explicit JobRanks(std::unique_ptr<tools::Job> job) : job_(std::move(job)) {}

  std::unique_ptr<tools::Job> job_;
  int worlds_ = 0;
};

}  // namespace ddprun::conformance
