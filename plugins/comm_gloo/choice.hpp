// The algorithms that the plugin declares, and which of them "auto" chooses.
#pragma once

#include <optional>
#include <string>

#include "ddprun/plugin/tuning.hpp"

namespace ddprun::gloo_backend {

enum class Algorithm { ring, tree, halving_doubling, doubling };

// In the order of the enum.
inline constexpr ddprun_comm_algorithm kAlgorithms[] = {
    algorithm("ring", kAllDtypes, kAllOps),
    algorithm("tree", kAllDtypes, kAllOps),
    algorithm("halving_doubling", kAllDtypes, kAllOps),
    algorithm("doubling", kAllDtypes, kAllOps),
};

// What comm.options may have.
inline constexpr ddprun_option_spec kOptions[] = {
    text_option("interface", nullptr,
                "the network interface on which this host's ranks listen; found by itself if not given"),
    kTuningOption,
};

// Empty for "auto"; otherwise `name` is one of the above.
std::optional<Algorithm> algorithm_named(const std::string& name);

// The table for "auto": comm.options.tuning, or the plugin's own table. Collective. Throws CommError.
Tuning tuning_for(const Host& host);

}  // namespace ddprun::gloo_backend
