// The algorithms that the plugin declares, and which of them "auto" chooses.
#pragma once

#include <cstddef>
#include <iterator>

#include "ddprun/plugin/tuning.hpp"

namespace ddprun::gloo_backend {

enum class Algorithm { ring, tree, halving_doubling, doubling, hierarchical };

// In the order of the enum.
inline constexpr ddprun_comm_algorithm kAlgorithms[] = {
    algorithm("ring", kAllDtypes, kAllOps),
    algorithm("tree", kAllDtypes, kAllOps),
    algorithm("halving_doubling", kAllDtypes, kAllOps, 0, kAllDtypes),
    algorithm("doubling", kAllDtypes, kAllOps, 0, kAllDtypes),
    algorithm("hierarchical", kAllDtypes, kAllOps),
};
inline constexpr std::size_t kAlgorithmCount = std::size(kAlgorithms);
static_assert(kAlgorithmCount == static_cast<std::size_t>(Algorithm::hierarchical) + 1);

// What comm.options may have.
inline constexpr ddprun_option_spec kOptions[] = {
    text_option("interface", nullptr,
                "the network interface on which this host's ranks listen; found by itself if not given"),
    kTuningOption,
};

// The table for "auto": comm.options.tuning, or the plugin's own table. Collective. Throws CommError.
// is_hierarchical: the plugin's own table uses hierarchical.
Tuning tuning_for(const Host& host, bool is_hierarchical);
// For a call with Collective::canonical_order.
Algorithm in_canonical_order(uint64_t bytes);
// For the reduction between one rank of each host: by the plugin's own table without hierarchical.
Algorithm between_hosts(int hosts, uint64_t bytes);

}  // namespace ddprun::gloo_backend
