// The algorithms that the plugin declares, and which of them "auto" takes.
#pragma once

#include "ddprun/plugin/tuning.hpp"

namespace ddprun::ucx_backend {

enum class Algorithm { ring, tree, shared };

inline constexpr ddprun_comm_algorithm kAlgorithms[] = {
    algorithm("ring", kAllDtypes, kAllOps),
    algorithm("tree", kAllDtypes, kAllOps),
    algorithm("shared", kAllDtypes, kAllOps, bits(Memory::host)),
};

inline constexpr std::size_t kOfGpus = 2;  // the first ones take the memory of GPUs too

// `name` is one of the above.
Algorithm algorithm_named(const std::string& name);

// How an allreduce goes where "auto" is asked for: functions of their arguments only, so that all ranks agree.
class Choice {
 public:
  // Collective. By comm.options.tuning, which is for the GPUs' memory where the ranks have some, else the table that
  // comes with the plugin: `shared` where some ranks share their memory. Throws CommError.
  Choice(const Host& host, bool some_share_memory);
  // Of vectors in the host's memory.
  Algorithm algorithm(int ranks, uint64_t bytes) const { return algorithm_named(tuning_.algorithm(ranks, bytes)); }
  // Of vectors in the memory of GPUs.
  Algorithm algorithm_on_gpus(int ranks, uint64_t bytes) const { return algorithm_named(on_gpus_.algorithm(ranks, bytes)); }
  // Between so many ranks, none of which shares memory with another.
  Algorithm algorithm_of_messages(int ranks, uint64_t bytes) const { return algorithm_named(of_messages_.algorithm(ranks, bytes)); }
  // Whether the table for vectors in the host's memory has it for some size and number of ranks.
  bool may_take(Algorithm wanted) const;

 private:
  Tuning of_messages_;
  Tuning on_gpus_;
  Tuning tuning_;
};

}  // namespace ddprun::ucx_backend
