#include "algorithms.hpp"

#include <mutex>

#include "settings.hpp"

namespace ddprun::nccl_backend {
namespace {

constexpr char kVariable[] = "NCCL_ALGO";

struct {
  std::mutex mutex;
  int holders = 0;
  std::string value;
  bool is_ours = false;  // set by us, not by the user's environment
} state;

}  // namespace

Algorithm algorithm_named(const std::string& name) {
  return name == name_of(Algorithm::ring)   ? Algorithm::ring
         : name == name_of(Algorithm::tree) ? Algorithm::tree
                                            : Algorithm::nccl;
}

std::string forced_algorithm(Algorithm asked, bool deterministic) {
  const std::string own = asked != Algorithm::nccl ? name_of(asked) : deterministic ? "ring,tree" : "";
  if (own.empty()) return "";
  return "allreduce:" + own + (deterministic ? ";reducescatter:ring" : "");
}

AlgorithmScope::AlgorithmScope(std::string value) {
  const std::lock_guard lock(state.mutex);
  if (state.holders > 0 && state.value != value) {
    throw CommError(CommStatus::unsupported, "another communicator of this process is joining with NCCL_ALGO=\"" +
                                                 state.value + "\", this one needs \"" + value +
                                                 "\": join one after the other");
  }
  const auto before = variable(kVariable);
  if (state.holders == 0 && before && !value.empty() && value != before) {
    throw CommError(CommStatus::unsupported, "NCCL_ALGO=\"" + *before + "\" in the environment contradicts \"" + value +
                                                 "\", which comm.algorithm and train.deterministic ask for: unset it");
  }
  if (state.holders == 0) {
    state.is_ours = !before && !value.empty();
    if (state.is_ours) set_variable(kVariable, value);
    state.value = std::move(value);
  }
  ++state.holders;
}

AlgorithmScope::~AlgorithmScope() {
  const std::lock_guard lock(state.mutex);
  if (--state.holders == 0 && state.is_ours) unset_variable(kVariable);
}

}  // namespace ddprun::nccl_backend
