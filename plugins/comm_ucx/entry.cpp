#include "entry.hpp"

#include "communicator.hpp"

__attribute__((visibility("default"))) ddprun::Communicator* ddprun_ucx_backend_make(const ddprun::Host& host) {
  return new ddprun::ucx_backend::UcxCommunicator(host);
}
