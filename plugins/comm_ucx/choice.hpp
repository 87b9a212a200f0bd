// The algorithms that the plugin declares, and which of them "auto" takes.
#pragma once

#include "ddprun/tuning.hpp"

namespace ddprun::ucx_backend {

enum class Way { ring, tree, shared };

inline constexpr ddprun_comm_algorithm kAlgorithms[] = {
    algorithm("ring", kAllDtypes, kAllOps),
    algorithm("tree", kAllDtypes, kAllOps),
    algorithm("shared", kAllDtypes, kAllOps),
};

// `name` is one of the above.
Way way_named(const std::string& name);

// How an allreduce goes where "auto" is asked for: functions of their arguments only, so that all ranks agree.
class Choice {
 public:
  // Collective. By comm.options.tuning, else the table that comes with the plugin: `shared` where some ranks share
  // their memory. Throws Failure.
  Choice(const Host& host, bool some_share_memory);
  Way way(int ranks, uint64_t bytes) const { return way_named(tuning_.algorithm(ranks, bytes)); }
  // Between so many ranks, none of which shares memory with another.
  Way way_of_messages(int ranks, uint64_t bytes) const { return way_named(of_messages_.algorithm(ranks, bytes)); }
  // Whether the table has it for some size and number of ranks.
  bool may_take(Way way) const;

 private:
  Tuning of_messages_;
  Tuning tuning_;
};

}  // namespace ddprun::ucx_backend
