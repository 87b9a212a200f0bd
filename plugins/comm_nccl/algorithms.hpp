// The algorithms that the plugin declares, and how NCCL is forced to use one. NCCL 2.28 has no algorithm per
// communicator: it reads NCCL_ALGO while it creates one.
#pragma once

#include <string>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::nccl_backend {

// NCCL cannot reduce 16-bit integers; broadcast and allgather only move bytes and support them too.
inline constexpr uint32_t kDtypes = kAllDtypes & ~bits(DType::int16);

// "nccl": NCCL's own cost model chooses for each call; "auto" is the same.
inline constexpr ddprun_comm_algorithm kAlgorithms[] = {
    algorithm("ring", kDtypes, kAllOps),
    algorithm("tree", kDtypes, kAllOps),
    algorithm("nccl", kDtypes, kAllOps),
};

enum class Algorithm { ring, tree, nccl };  // in the order of the names above

// `name` is one of the above, or "auto".
Algorithm algorithm_named(const std::string& name);
constexpr const char* name_of(Algorithm algorithm) {
  return kAlgorithms[static_cast<std::size_t>(algorithm)].name;
}

// The value for NCCL_ALGO; empty if NCCL may choose. Never only "tree", because broadcast would have no algorithm then.
// With `deterministic` NCCL uses only rings and trees, whose order of summation is fixed; algorithms that sum inside
// switches (NVLS, CollNet) are excluded.
std::string forced_algorithm(Algorithm asked, bool deterministic);

// Sets NCCL_ALGO and restores the old value in the destructor. Several objects may exist at once, in threads that
// create one communicator or several, if all need the same value. A different value throws
// CommError(CommStatus::unsupported), and so does a contradicting value in the environment.
class AlgorithmScope {
 public:
  explicit AlgorithmScope(std::string value);
  ~AlgorithmScope();
  AlgorithmScope(const AlgorithmScope&) = delete;
  AlgorithmScope& operator=(const AlgorithmScope&) = delete;
};

}  // namespace ddprun::nccl_backend
