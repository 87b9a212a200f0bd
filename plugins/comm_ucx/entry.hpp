// The border between the plugin, which is loaded to be asked what it can, and the library beside it, which brings UCX:
// that costs half a second and changes the process (docs/decisions.md), so only a rank that communicates pays for it.
#pragma once

#include "ddprun/comm_plugin.hpp"

extern "C" {

// What libddprun_ucx_backend.so exports. Collective; the caller owns the result. Throws ddprun::Failure.
ddprun::Communicator* ddprun_ucx_backend_make(const ddprun::Host& host);
}
