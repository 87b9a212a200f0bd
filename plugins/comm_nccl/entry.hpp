// The border between the plugin, which is loaded to be asked what it can, and the library beside it, which brings NCCL
// and the CUDA runtime: 220 MB that only a rank that communicates needs.
#pragma once

#include "ddprun/comm_plugin.hpp"

extern "C" {

// What libddprun_nccl_backend.so exports. Collective; the caller owns the result. Throws ddprun::Failure.
ddprun::Communicator* ddprun_nccl_backend_make(const ddprun::Host& host);
}
