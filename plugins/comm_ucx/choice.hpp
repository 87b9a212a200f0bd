// The algorithms that the plugin declares, and which of them "auto" chooses.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ddprun/plugin/tuning.hpp"

namespace ddprun::ucx_backend {

enum class Algorithm { ring, tree, hierarchical };

inline constexpr ddprun_comm_algorithm kAlgorithms[] = {
    algorithm("ring", kAllDtypes, kAllOps),
    algorithm("tree", kAllDtypes, kAllOps),
    algorithm("hierarchical", kAllDtypes, kAllOps, bits(Memory::host)),
};
inline constexpr std::size_t kOfGpus = 2;  // the first ones support GPU memory too

// What comm.options may have.
inline constexpr ddprun_option_spec kOptions[] = {
    text_option("tls", nullptr, "the transports that UCX may use, as in UCX_TLS; that variable, or all, if not given"),
    text_option("devices", nullptr,
                "the network devices that UCX may use, as in UCX_NET_DEVICES; that variable, or all, if not given"),
    kTuningOption,
};

// Empty for "auto"; otherwise `name` is one of the above.
std::optional<Algorithm> algorithm_named(const std::string& name);

// The rows of a tuning table for one number of ranks.
class Table {
 public:
  Table(const Tuning& tuning, int ranks);
  Algorithm algorithm(uint64_t bytes) const;
  bool has(Algorithm algorithm) const;

 private:
  std::vector<std::pair<uint64_t, Algorithm>> rows_;  // the limit in bytes, ascending
};

// What "auto" chooses. It depends on the arguments only, so that all ranks agree.
class Choice {
 public:
  // Collective. The table is comm.options.tuning, which is for GPU memory if the ranks have GPUs, else the plugin's
  // own. hosts: their number. is_hierarchical: the plugin's own table uses hierarchical. Throws CommError.
  Choice(const Host& host, int hosts, bool is_hierarchical);
  // For vectors in `memory`.
  Algorithm algorithm(Memory memory, uint64_t bytes) const {
    return (memory == tuned_memory_ ? tuned_ : over_ucx_).algorithm(bytes);
  }
  // For the reduction between one rank of each host.
  Algorithm between_hosts(uint64_t bytes) const { return between_hosts_.algorithm(bytes); }
  bool may_take(Algorithm algorithm) const { return tuned_.has(algorithm); }

 private:
  Memory tuned_memory_;
  Table tuned_, over_ucx_, between_hosts_;
};

}  // namespace ddprun::ucx_backend
