#include <nccl.h>

#include "algorithms.hpp"
#include "lazy/communicator.hpp"

namespace {

using namespace ddprun;

#define DDPRUN_TEXT_OF(number) #number
#define DDPRUN_TEXT(number) DDPRUN_TEXT_OF(number)
constexpr char kLibrary[] = "nccl " DDPRUN_TEXT(NCCL_MAJOR) "." DDPRUN_TEXT(NCCL_MINOR) "." DDPRUN_TEXT(NCCL_PATCH);

constexpr CommPluginInfo kNccl = {"nccl", "0.1.0", kLibrary,
                                  DDPRUN_CAP_CUDA | DDPRUN_CAP_STREAM_ORDERED | DDPRUN_CAP_ALLOC | DDPRUN_CAP_CAPTURE,
                                  nccl_backend::kAlgorithms};

constexpr lazy::Library kBackend = {&kNccl, "libddprun_nccl_backend.so", "ddprun_nccl_backend_make",
                                      "install it again, name its folder in LD_LIBRARY_PATH, or build again with "
                                      "DDPRUN_NCCL_DIR and DDPRUN_CUDA_DIR"};

class Nccl final : public lazy::Forwarder {
 public:
  explicit Nccl(const Host& host) : Forwarder(kBackend, host) {}
};

}  // namespace

DDPRUN_COMM_PLUGIN(Nccl, kNccl);
