#include "communicator.hpp"
#include "lazy/library.hpp"

// The function that libddprun_nccl_backend.so exports.
DDPRUN_LAZY_BACKEND(nccl, ddprun::nccl_backend::NcclCommunicator);
