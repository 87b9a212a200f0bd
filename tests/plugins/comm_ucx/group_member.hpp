// A rank of a SharedGroup in a test: the group with all that it stands on, joined through the test's own exchange.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ddprun/comm_backend.hpp"
#include "plugins/comm_ucx/rank_host.hpp"
#include "plugins/comm_ucx/shared_group.hpp"
#include "host/liveness.hpp"
#include "tools/conformance/ranks.hpp"

namespace ddprun::testing {


class GroupMember {
 public:
  explicit GroupMember(Rank& rank, uint32_t deadline_ms = 20'000)
      : rank_(rank),
        as_host_(rank, "auto", deadline_ms),
        host_(as_host_.host()),
        places_(host::places_of(host_)),
        liveness_(places_, rank.rank()) {
    group_ = std::make_unique<ucx_backend::SharedGroup>(host_, "", [this] { return liveness_.first_ended(); });
    if (!group_->is_usable()) throw std::runtime_error("the group is not usable: " + group_->why_not());
  }

  ucx_backend::SharedGroup& group() { return *group_; }
  void end() { group_.reset(); }
  void raise_abort_flag() { as_host_.raise_abort_flag(); }

  void allreduce(DType dtype, Op op, const void* send, void* recv, std::size_t count) {
    group_->allreduce(allreduce_of(dtype, op, send, recv, count));
  }

 private:
  Rank& rank_;
  RankHost as_host_;
  const Host host_;
  const std::vector<host::Place> places_;
  const host::Liveness liveness_;
  std::unique_ptr<ucx_backend::SharedGroup> group_;
};

}  // namespace ddprun::testing
