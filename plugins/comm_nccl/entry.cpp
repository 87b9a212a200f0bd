#include "entry.hpp"

#include "communicator.hpp"

__attribute__((visibility("default"))) ddprun::Communicator* ddprun_nccl_backend_make(const ddprun::Host& host) {
  return new ddprun::nccl_backend::NcclCommunicator(host);
}
