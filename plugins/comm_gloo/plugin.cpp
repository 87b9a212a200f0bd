#include <gloo/config.h>

#include "choice.hpp"
#include "lazy/library.hpp"

namespace {

using namespace ddprun;

constexpr char kLibrary[] =
    "gloo " DDPRUN_TEXT(GLOO_VERSION_MAJOR) "." DDPRUN_TEXT(GLOO_VERSION_MINOR) "." DDPRUN_TEXT(GLOO_VERSION_PATCH);

constexpr uint64_t kCapabilities =
    DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING | DDPRUN_CAP_REDUCE_SCATTER | DDPRUN_CAP_EXCHANGE;

constexpr CommPluginInfo kGloo = {
    "gloo", "0.1.0", kLibrary, kCapabilities, gloo_backend::kAlgorithms, gloo_backend::kOptions};

constexpr lazy::Library kBackend = DDPRUN_LAZY_LIBRARY(gloo, kGloo, "install it again (Debian: libgloo0)");

}  // namespace

DDPRUN_COMM_PLUGIN_OF(lazy::join<kBackend>, kGloo);
