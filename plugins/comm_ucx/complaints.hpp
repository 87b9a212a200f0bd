// What UCX would print. It writes to standard output, which is the run's; so its warnings and errors are kept instead,
// and become part of the failure that they belong to.
#pragma once

#include <ucs/type/status.h>

#include <string>

#include "ddprun/comm_backend.hpp"

namespace ddprun::ucx_backend {

// What UCX has complained about on this thread since the last call, one line; "" is nothing.
std::string complaints();

// Throws CommError(status) with `what`, UCX's word for `result` and its complaints, unless result is UCS_OK.
void check(ucs_status_t result, CommStatus status, const std::string& what);

}  // namespace ddprun::ucx_backend
