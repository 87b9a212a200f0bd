#include "lazy/communicator.hpp"
#include "communicator.hpp"

// What libddprun_ucx_backend.so exports.
extern "C" __attribute__((visibility("default"))) ddprun::lazy::Make ddprun_ucx_backend_make;

ddprun::Communicator* ddprun_ucx_backend_make(const ddprun::Host& host) {
  return new ddprun::ucx_backend::UcxCommunicator(host);
}
