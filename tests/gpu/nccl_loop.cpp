// The loop of nccl-tests on the NCCL that ddprun uses (https://github.com/NVIDIA/nccl-tests): what allreduce can do
// here.
//
//   nccl_loop RANK SIZE DEVICE ID_FILE SAMPLES BYTES...
//
// One process per rank; rank 0 leaves NCCL's id in ID_FILE, which must not be there. Sums float32 in place. For each
// size a warm-up of 5 calls, then samples of 20 calls on one stream and one wait. Each rank prints a line per size:
// bytes, then the seconds of the host's steady clock at the end of the warm-up and of each sample.
#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace {

constexpr int kWarmup = 5;
constexpr int kCalls = 20;

void check(const char* what, cudaError_t result) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "nccl_loop: %s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}

void check(const char* what, ncclResult_t result) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "nccl_loop: %s: %s: %s\n", what, ncclGetErrorString(result), ncclGetLastError(nullptr));
  std::exit(1);
}

ncclUniqueId exchange_id(int rank, const std::string& path) {
  ncclUniqueId id;
  if (rank == 0) {
    check("an id", ncclGetUniqueId(&id));
    std::ofstream(path + ".new", std::ios::binary).write(id.internal, sizeof id.internal);
    std::rename((path + ".new").c_str(), path.c_str());
    return id;
  }
  for (int turn = 0; turn < 6000; ++turn) {
    std::ifstream file(path, std::ios::binary);
    if (file.read(id.internal, sizeof id.internal)) return id;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::fprintf(stderr, "nccl_loop: rank 0 left no id in %s\n", path.c_str());
  std::exit(1);
}

class Loop {
 public:
  Loop(int rank, int size, const ncclUniqueId& id, std::size_t largest) {
    check("a stream", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    check("memory", cudaMalloc(&memory_, largest));
    check("memory", cudaMemset(memory_, 0, largest));
    check("memory", cudaDeviceSynchronize());
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    check("joining", ncclCommInitRankConfig(&comm_, size, id, rank, &config));
  }
  ~Loop() { ncclCommDestroy(comm_); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Seconds of the steady clock, when they had ended.
  double run(std::size_t bytes, int calls) {
    for (int call = 0; call < calls; ++call) {
      check("allreduce", ncclAllReduce(memory_, memory_, bytes / sizeof(float), ncclFloat, ncclSum, comm_, stream_));
    }
    check("allreduce", cudaStreamSynchronize(stream_));
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

 private:
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  void* memory_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) {
    std::fprintf(stderr, "usage: nccl_loop RANK SIZE DEVICE ID_FILE SAMPLES BYTES...\n");
    return 2;
  }
  const int rank = std::atoi(argv[1]), size = std::atoi(argv[2]), samples = std::atoi(argv[5]);
  check("the device", cudaSetDevice(std::atoi(argv[3])));
  std::size_t largest = 0;
  for (int i = 6; i < argc; ++i) largest = std::max<std::size_t>(largest, std::strtoull(argv[i], nullptr, 10));
  Loop loop(rank, size, exchange_id(rank, argv[4]), largest);
  for (int i = 6; i < argc; ++i) {
    const std::size_t bytes = std::strtoull(argv[i], nullptr, 10);
    std::printf("%s %.9f", argv[i], loop.run(bytes, kWarmup));
    for (int sample = 0; sample < samples; ++sample) std::printf(" %.9f", loop.run(bytes, kCalls));
    std::printf("\n");
  }
  return 0;
}
