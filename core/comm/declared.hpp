// What a plugin declares, and what is wrong with asking it for something else. Creates nothing, so that a config can be
// checked without ranks.
#pragma once

#include <optional>
#include <string>

#include "ddprun/comm_backend.hpp"
#include "ddprun/plugin/comm_plugin.h"

namespace ddprun::comm {

Capabilities capabilities_of(const ddprun_comm_plugin& plugin);

// Why this plugin cannot run an algorithm over buffers in such memory: `expected "auto", "ring" or "tree" (did you mean
// "ring"?)`; nothing where it is "auto" or declared for it.
std::optional<std::string> algorithm_error(const ddprun_comm_plugin& plugin, const std::string& algorithm,
                                           Memory memory);

// Why this plugin cannot take buffers in host or in CUDA memory, with what to do, as text behind the name of the key
// comm.backend; nothing where it takes them. `staged`: copies through page-locked host memory are allowed.
std::optional<std::string> memory_error(const ddprun_comm_plugin& plugin, Memory memory, bool staged);

// The memory of the buffers that this plugin gets for tensors in `memory`: host memory where tensors on a GPU are
// copied through it (`staged`) and the plugin takes it.
Memory memory_given(const ddprun_comm_plugin& plugin, Memory memory, bool staged);

}  // namespace ddprun::comm
