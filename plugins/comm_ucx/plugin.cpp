#include <ucp/api/ucp_version.h>

#include "choice.hpp"
#include "communicator.hpp"

namespace {

#define DDPRUN_TEXT_OF(number) #number
#define DDPRUN_TEXT(number) DDPRUN_TEXT_OF(number)
constexpr char kLibrary[] = "ucx " DDPRUN_TEXT(UCP_API_MAJOR) "." DDPRUN_TEXT(UCP_API_MINOR);

constexpr ddprun::CommPluginInfo kUcx = {"ucx", "0.1.0", kLibrary,
                                         DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING | DDPRUN_CAP_ALLOC,
                                         ddprun::ucx_backend::kAlgorithms};

}  // namespace

DDPRUN_COMM_PLUGIN(ddprun::ucx_backend::UcxCommunicator, kUcx);
