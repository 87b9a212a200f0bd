// The algorithms that the plugin declares, and which of them "auto" chooses.
#pragma once

#include <iterator>

#include "ddprun/plugin/tuning.hpp"

namespace ddprun::ucx_backend {

enum class Algorithm { ring, tree, halving_doubling, hierarchical };

// In the order of the enum.
inline constexpr ddprun_comm_algorithm kAlgorithms[] = {
    algorithm("ring", kAllDtypes, kAllOps),
    algorithm("tree", kAllDtypes, kAllOps, 0, kAllDtypes),
    algorithm("halving_doubling", kAllDtypes, kAllOps, 0, kAllDtypes),
    algorithm("hierarchical", kAllDtypes, kAllOps, bits(Memory::host)),
};
inline constexpr std::size_t kOfGpus = 3;  // the first ones support GPU memory too

// What comm.options may have.
inline constexpr ddprun_option_spec kOptions[] = {
    text_option("tls", nullptr, "the transports that UCX may use, as in UCX_TLS; that variable, or all, if not given"),
    text_option("devices", nullptr,
                "the network devices that UCX may use, as in UCX_NET_DEVICES; that variable, or all, if not given"),
    kTuningOption,
};

// What "auto" chooses. It depends on the arguments only, so that all ranks agree.
class Choice {
 public:
  // Collective. The table is comm.options.tuning, which is for GPU memory if the ranks have GPUs, else the plugin's
  // own. hosts: their number. is_hierarchical: the plugin's own table uses hierarchical. Throws CommError.
  Choice(const Host& host, int hosts, bool is_hierarchical);
  Algorithm algorithm(const Collective& call) const;
  // For the reduction between one rank of each host.
  Algorithm between_hosts(uint64_t bytes) const;
  bool uses_hierarchical() const { return tuned_.uses(ranks_, "hierarchical"); }

 private:
  const Memory tuned_memory_;
  const int ranks_, hosts_;
  const Tuning tuned_, over_ucx_;
};

}  // namespace ddprun::ucx_backend
