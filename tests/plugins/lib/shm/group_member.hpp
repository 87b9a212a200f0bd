// A rank of a Group in a test, with all that the group needs, joined through the test's own exchange.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "ddprun/collective.hpp"
#include "host/liveness.hpp"
#include "plugins/rank_host.hpp"
#include "shm/group.hpp"
#include "testing/ranks.hpp"

namespace ddprun::testing {

class GroupMember {
 public:
  explicit GroupMember(Rank& rank, uint32_t deadline_ms = 20'000)
      : as_host_(rank, "auto", deadline_ms),
        host_(as_host_.host()),
        group_(std::make_unique<shm::Group>(host_, host::processes_of(host_))) {
    if (!group_->is_usable()) throw std::runtime_error("the group is not usable: " + group_->why_not());
  }

  shm::Group& group() { return *group_; }
  void end() { group_.reset(); }
  void raise_abort_flag() { as_host_.raise_abort_flag(); }

  shm::Algorithm allreduce(DType dtype, Op op, const void* send, void* recv, std::size_t count,
                           shm::Algorithm algorithm = shm::Algorithm::automatic) {
    group_->run("allreduce", [&](shm::Collectives& all, shm::Waiter& waiter) {
      algorithm = all.allreduce(allreduce_of(dtype, op, send, recv, count), algorithm, waiter);
    });
    return algorithm;
  }

 private:
  RankHost as_host_;
  const Host host_;
  std::unique_ptr<shm::Group> group_;
};

}  // namespace ddprun::testing
