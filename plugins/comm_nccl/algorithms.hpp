// The algorithms that the plugin declares, and how NCCL is made to take one. NCCL 2.28 has no algorithm per
// communicator: it reads NCCL_ALGO while it joins one.
#pragma once

#include <string>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::nccl_backend {

// NCCL has no 16-bit integers to reduce; broadcast and allgather only move bytes and take them too.
inline constexpr uint32_t kDtypes = kAllDtypes & ~bits(DType::int16);

// "nccl" is what NCCL's own cost model takes for each call; "auto" is the same.
inline constexpr ddprun_comm_algorithm kAlgorithms[] = {
    algorithm("ring", kDtypes, kAllOps),
    algorithm("tree", kDtypes, kAllOps),
    algorithm("nccl", kDtypes, kAllOps),
};

enum class Algorithm { ring, tree, nccl };  // as they stand above

// `name` is one of the above, or "auto".
Algorithm algorithm_named(const std::string& name);
constexpr const char* name_of(Algorithm algorithm) {
  return kAlgorithms[static_cast<std::size_t>(algorithm)].name;
}

// What NCCL_ALGO has to be; empty where NCCL may choose. Never a bare "tree", which would leave broadcast without any.
// Under `deterministic` NCCL keeps to rings and trees, whose order of summation is fixed; what sums inside switches
// (NVLS, CollNet) is left out.
std::string forced_algorithm(Algorithm asked, bool deterministic);

// NCCL_ALGO, set as long as this lives and then what it was before. Several may live at once, in threads that join one
// communicator or several, if all want the same; another one throws CommError(CommStatus::unsupported), and so does a
// value of the environment that contradicts.
class AlgorithmScope {
 public:
  explicit AlgorithmScope(std::string value);
  ~AlgorithmScope();
  AlgorithmScope(const AlgorithmScope&) = delete;
  AlgorithmScope& operator=(const AlgorithmScope&) = delete;
};

}  // namespace ddprun::nccl_backend
