#include <nccl.h>

#include "algorithms.hpp"
#include "lazy/library.hpp"

namespace {

using namespace ddprun;

#define DDPRUN_TEXT_OF(number) #number
#define DDPRUN_TEXT(number) DDPRUN_TEXT_OF(number)
constexpr char kLibrary[] = "nccl " DDPRUN_TEXT(NCCL_MAJOR) "." DDPRUN_TEXT(NCCL_MINOR) "." DDPRUN_TEXT(NCCL_PATCH);

constexpr CommPluginInfo kNccl = {
    "nccl", "0.1.0", kLibrary,
    DDPRUN_CAP_CUDA | DDPRUN_CAP_STREAM_ORDERED | DDPRUN_CAP_ALLOC | DDPRUN_CAP_CAPTURE | DDPRUN_CAP_REDUCE_SCATTER,
    nccl_backend::kAlgorithms};

constexpr lazy::Library kBackend = DDPRUN_LAZY_LIBRARY(
    nccl, kNccl,
    "install it again, name its folder in LD_LIBRARY_PATH, or build again with DDPRUN_NCCL_DIR and DDPRUN_CUDA_DIR");

std::unique_ptr<CommBackend> join_nccl(const Host& host) {
  return lazy::join(kBackend, host);
}

}  // namespace

DDPRUN_COMM_PLUGIN_OF(join_nccl, kNccl);
