// The algorithms that the plugin declares, and which of them "auto" takes.
#pragma once

#include <optional>
#include <string>

#include "ddprun/plugin/tuning.hpp"

namespace ddprun::gloo_backend {

enum class Algorithm { ring, tree, halving_doubling };

// As the enum has them.
inline constexpr ddprun_comm_algorithm kAlgorithms[] = {
    algorithm("ring", kAllDtypes, kAllOps),
    algorithm("tree", kAllDtypes, kAllOps),
    algorithm("halving_doubling", kAllDtypes, kAllOps),
};

// Nothing for "auto"; `name` is one of the above otherwise.
std::optional<Algorithm> algorithm_named(const std::string& name);

// What "auto" takes: comm.options.tuning, or the table that comes with the plugin. Collective. Throws CommError.
Tuning tuning_for(const Host& host);

}  // namespace ddprun::gloo_backend
