// UCX's warnings and errors. UCX would print them to standard output, which belongs to the run. They are kept here
// instead, and become part of the error that they belong to.
#pragma once

#include <ucs/type/status.h>

#include <string>

#include "ddprun/comm_backend.hpp"

namespace ddprun::ucx_backend {

// UCX's complaints on this thread since the last call, in one line; "" if there are none.
std::string complaints();

// Throws CommError(status), unless result is UCS_OK. Its text: `what`, and UCX's complaints or else its name of
// `result`.
void check(ucs_status_t result, CommStatus status, const std::string& what);

}  // namespace ddprun::ucx_backend
