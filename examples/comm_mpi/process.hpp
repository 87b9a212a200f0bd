// MPI in this process: it can be started once only, and ended once only.
#pragma once

#include "ddprun/comm_backend.hpp"

// Starts MPI, unless it runs already. Waits for the other processes of the MPI job. Throws ddprun::CommError.
void start_mpi();

// Ends MPI if start_mpi() has started it. Waits for the other processes of the MPI job.
void finish_mpi();

// Throws ddprun::CommError if `code`, the result of the MPI function `what`, is not MPI_SUCCESS.
void check(int code, const char* what);
