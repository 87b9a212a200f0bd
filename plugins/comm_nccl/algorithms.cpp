#include "algorithms.hpp"

#include <mutex>

#include "environment.hpp"

namespace ddprun::nccl_backend {
namespace {

constexpr char kVariable[] = "NCCL_ALGO";

struct Shared {
  std::mutex mutex;
  int holders = 0;
  std::string value;
  bool is_ours = false;  // and not the environment's
};

Shared& shared() {
  static Shared state;
  return state;
}

}  // namespace

const char* served_name(const std::string& asked) {
  for (const auto& entry : kAlgorithms) {
    if (asked == entry.name) return entry.name;
  }
  return "nccl";
}

std::string forced_algorithm(const std::string& asked, bool deterministic) {
  const std::string own = asked == "ring" || asked == "tree" ? asked : deterministic ? "ring,tree" : "";
  if (own.empty()) return "";
  return "allreduce:" + own + (deterministic ? ";reducescatter:ring" : "");
}

AlgorithmScope::AlgorithmScope(std::string value) {
  Shared& state = shared();
  const std::lock_guard lock(state.mutex);
  if (state.holders > 0 && state.value != value) {
    throw Failure(DDPRUN_UNSUPPORTED, "another communicator of this process is joining with NCCL_ALGO=\"" +
                                          state.value + "\", this one needs \"" + value +
                                          "\": join one after the other");
  }
  const auto before = variable(kVariable);
  if (state.holders == 0 && before && !value.empty() && value != before) {
    throw Failure(DDPRUN_UNSUPPORTED, "NCCL_ALGO=\"" + *before + "\" in the environment contradicts \"" + value +
                                          "\", which comm.algorithm and comm.deterministic ask for: unset it");
  }
  if (state.holders == 0) {
    state.is_ours = !before && !value.empty();
    if (state.is_ours) set_variable(kVariable, value);
    state.value = std::move(value);
  }
  ++state.holders;
}

AlgorithmScope::~AlgorithmScope() {
  Shared& state = shared();
  const std::lock_guard lock(state.mutex);
  if (--state.holders == 0 && state.is_ours) unset_variable(kVariable);
}

}  // namespace ddprun::nccl_backend
