#include <nccl.h>

#include "algorithms.hpp"
#include "lazy/library.hpp"

namespace {

using namespace ddprun;

#define DDPRUN_TEXT_OF(number) #number
#define DDPRUN_TEXT(number) DDPRUN_TEXT_OF(number)
constexpr char kLibrary[] = "nccl " DDPRUN_TEXT(NCCL_MAJOR) "." DDPRUN_TEXT(NCCL_MINOR) "." DDPRUN_TEXT(NCCL_PATCH);

constexpr ddprun_option_spec kOptions[] = {
    text_option("interface", nullptr, "the network interface, as NCCL_SOCKET_IFNAME"),
    flag_option("ib_disable", nullptr, "no InfiniBand and no RoCE, as NCCL_IB_DISABLE"),
    text_option("ib_hca", nullptr, "the InfiniBand adapters, as NCCL_IB_HCA"),
    flag_option("p2p_disable", nullptr, "not from GPU to GPU, as NCCL_P2P_DISABLE"),
    flag_option("shm_disable", nullptr, "not through shared memory, as NCCL_SHM_DISABLE"),
    text_option("debug", nullptr, "how much NCCL prints, as NCCL_DEBUG"),
    text_option("debug_subsys", nullptr, "about what NCCL prints, as NCCL_DEBUG_SUBSYS"),
    text_option("debug_file", nullptr, "where NCCL prints, as NCCL_DEBUG_FILE"),
    flag_option("share_gpu", "false", "several ranks may use one GPU; for tests"),
};

constexpr uint64_t kCapabilities =
    DDPRUN_CAP_CUDA | DDPRUN_CAP_STREAM_ORDERED | DDPRUN_CAP_ALLOC | DDPRUN_CAP_REDUCE_SCATTER | DDPRUN_CAP_EXCHANGE;

constexpr CommPluginInfo kNccl = {"nccl", "0.1.0", kLibrary, kCapabilities, nccl_backend::kAlgorithms, kOptions};

constexpr lazy::Library kBackend = DDPRUN_LAZY_LIBRARY(
    nccl, kNccl,
    "install it again, name its folder in LD_LIBRARY_PATH, or build again with DDPRUN_NCCL_DIR and DDPRUN_CUDA_DIR");

std::unique_ptr<CommBackend> join_nccl(const Host& host) {
  return lazy::join(kBackend, host);
}

}  // namespace

DDPRUN_COMM_PLUGIN_OF(join_nccl, kNccl);
