#include <ucp/api/ucp_version.h>

#include <cstdlib>

#include "choice.hpp"
#include "lazy/library.hpp"

namespace {

using namespace ddprun;

#define DDPRUN_TEXT_OF(number) #number
#define DDPRUN_TEXT(number) DDPRUN_TEXT_OF(number)
constexpr char kLibrary[] = "ucx " DDPRUN_TEXT(UCP_API_MAJOR) "." DDPRUN_TEXT(UCP_API_MINOR);

// DDPRUN_UCX_CUDA: whether this build's UCX supports GPU memory.
constexpr uint64_t kCapabilities = DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING | DDPRUN_CAP_ALLOC |
                                   DDPRUN_CAP_REDUCE_SCATTER | DDPRUN_CAP_EXCHANGE |
                                   (DDPRUN_UCX_CUDA ? DDPRUN_CAP_CUDA : 0);

constexpr CommPluginInfo kUcx = {
    "ucx", "0.1.0", kLibrary, kCapabilities, ucx_backend::kAlgorithms, ucx_backend::kOptions};

constexpr lazy::Library kBackend = DDPRUN_LAZY_LIBRARY(
    ucx, kUcx, "install it again, name its folder in LD_LIBRARY_PATH, or build again with DDPRUN_UCX_DIR");

// When it is loaded, UCX patches functions of glibc to notice when memory is freed. That takes 0.4 s, and no transport
// for host memory needs it. UCX also patches the CUDA driver to remember which memory is a GPU's; without that it asks
// the driver each time. A user who wants either sets the variables.
std::unique_ptr<CommBackend> join_ucx(const Host& host) {
  constexpr int keep = 0;
  setenv("UCX_MEM_MMAP_HOOK_MODE", "none", keep);
  setenv("UCX_HANDLE_ERRORS", "none", keep);  // a crash is reported by ddprun's handlers of signals
  setenv("UCX_MEM_CUDA_HOOK_MODE", "none", keep);
  setenv("UCX_MEMTYPE_CACHE", "n", keep);
  return lazy::join(kBackend, host);
}

}  // namespace

DDPRUN_COMM_PLUGIN_OF(join_ucx, kUcx);
