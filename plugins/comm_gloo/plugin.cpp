#include <gloo/config.h>

#include "choice.hpp"
#include "communicator.hpp"

namespace {

#define DDPRUN_TEXT_OF(number) #number
#define DDPRUN_TEXT(number) DDPRUN_TEXT_OF(number)
constexpr char kLibrary[] =
    "gloo " DDPRUN_TEXT(GLOO_VERSION_MAJOR) "." DDPRUN_TEXT(GLOO_VERSION_MINOR) "." DDPRUN_TEXT(GLOO_VERSION_PATCH);

constexpr uint64_t kCapabilities =
    DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING | DDPRUN_CAP_REDUCE_SCATTER | DDPRUN_CAP_EXCHANGE;

constexpr ddprun::CommPluginInfo kGloo = {
    "gloo", "0.1.0", kLibrary, kCapabilities, ddprun::gloo_backend::kAlgorithms, ddprun::gloo_backend::kOptions};

}  // namespace

DDPRUN_COMM_PLUGIN(ddprun::gloo_backend::GlooCommunicator, kGloo);
