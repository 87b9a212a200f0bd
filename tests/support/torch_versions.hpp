// What differs between the versions of Torch from 2.7 on: the only place that asks for the version (tests/modules).
#pragma once

#include <torch/version.h>

namespace ddprun::testing {

// Whether Torch calls the hook of a parameter whose gradient is undefined. If not, the parameter counts as unused.
constexpr bool kHooksSeeUndefinedGradients = TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11;

}  // namespace ddprun::testing
