// The algorithms that the plugin declares, and which of them "auto" takes.
#pragma once

#include "ddprun/plugin/tuning.hpp"

namespace ddprun::gloo_backend {

inline constexpr ddprun_comm_algorithm kAlgorithms[] = {
    algorithm("ring", kAllDtypes, kAllOps),
    algorithm("tree", kAllDtypes, kAllOps),
    algorithm("halving_doubling", kAllDtypes, kAllOps),
};

// comm.options.tuning, or the table that comes with the plugin. Collective. Throws Failure.
Tuning tuning_for(const Host& host);

}  // namespace ddprun::gloo_backend
