// The launchers of one job on this host, as on several hosts. Each has a disk of its own, and 127.0.0.1 joins them.
#pragma once

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "e2e/program.hpp"

namespace ddprun::e2e {

class Nodes {
 public:
  // ranks: of each node. nnodes: the value of --nnodes; "": the number of nodes.
  Nodes(const Workplace& place, std::string config, std::vector<int> ranks, Argv overrides = {},
        std::string nnodes = "")
      : jobs(ranks.size()),
        place_(place),
        config_(std::move(config)),
        ranks_(std::move(ranks)),
        overrides_(std::move(overrides)),
        nnodes_(nnodes.empty() ? std::to_string(ranks_.size()) : std::move(nnodes)) {
    for (std::size_t node = 0; node < ranks_.size(); ++node) start(node);
  }

  // Again, after its launcher has ended; with `more` overrides.
  void start(std::size_t node, const Argv& more = {}) {
    jobs[node] = std::make_unique<Job>(place_, command(node, overrides_ + more));
  }

  std::vector<testing::ProcessResult> wait() {
    std::vector<testing::ProcessResult> results;
    for (auto& job : jobs) results.push_back(job->launcher().wait(std::chrono::seconds(120)));
    return results;
  }

  std::vector<std::unique_ptr<Job>> jobs;

 private:
  Argv command(std::size_t node, const Argv& overrides) const {
    const std::string number = std::to_string(node);
    return place_.training(config_, overrides) +
           Argv{"--set",
                "experiment.output=" + (place_.runs() / ("node" + number)).string(),
                "--nnodes",
                nnodes_,
                "--node_rank",
                number,
                "--master-addr=127.0.0.1",
                "--master-port",
                std::to_string(port_),
                "--nproc_per_node",
                std::to_string(ranks_[node])};
  }

  const Workplace& place_;
  const std::string config_;
  const std::vector<int> ranks_;
  const Argv overrides_;
  const std::string nnodes_;
  const int port_ = free_port();
};

// The newest run folder of a node.
inline std::filesystem::path newest_run(const Workplace& place, int node) {
  std::filesystem::path newest;
  for (const auto& entry : std::filesystem::directory_iterator(place.runs() / ("node" + std::to_string(node)))) {
    newest = std::max(newest, entry.path());
  }
  return newest;
}

}  // namespace ddprun::e2e
