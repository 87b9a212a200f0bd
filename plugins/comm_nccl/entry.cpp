#include "lazy/communicator.hpp"
#include "communicator.hpp"

// What libddprun_nccl_backend.so exports.
extern "C" __attribute__((visibility("default"))) ddprun::lazy::Make ddprun_nccl_backend_make;

ddprun::Communicator* ddprun_nccl_backend_make(const ddprun::Host& host) {
  return new ddprun::nccl_backend::NcclCommunicator(host);
}
