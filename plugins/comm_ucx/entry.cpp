#include "communicator.hpp"
#include "lazy/library.hpp"

// The function that libddprun_ucx_backend.so exports.
DDPRUN_LAZY_BACKEND(ucx, ddprun::ucx_backend::UcxCommunicator);
