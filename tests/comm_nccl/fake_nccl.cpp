// libnccl.so.2 without a GPU: moves nothing, remembers all, and fails as it is told.
#include <nccl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "fakes/cuda/fake.hpp"

struct ncclComm {
  int rank = 0;
  int size = 0;
  std::atomic<int> turns{0};  // left until what was begun has got on
};

namespace {

using ddprun::testing::Fake;

Fake& fake() {
  return *ddprun_fake();
}

// What the call `name` answers; `what` stands behind it in the record.
ncclResult_t call(const std::string& name, const std::string& what = "", ncclComm_t comm = nullptr) {
  fake().record(name + (what.empty() ? "" : " " + what));
  {
    const std::lock_guard lock(fake().mutex);
    if (fake().failing == name) return static_cast<ncclResult_t>(fake().result);
  }
  if (comm == nullptr || fake().turns == 0) return ncclSuccess;
  comm->turns = fake().turns.load();
  return ncclInProgress;
}

std::string of(size_t count, int type, int op, cudaStream_t stream) {
  return "count " + std::to_string(count) + " type " + std::to_string(type) + " op " + std::to_string(op) + " stream " +
         std::to_string(reinterpret_cast<uintptr_t>(stream));
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "-" : value;
}

// As NCCL tells it, on the first rank of several.
void report(size_t bytes, const ncclComm& comm) {
  const char* const path = std::getenv("NCCL_DEBUG_FILE");
  if (path == nullptr || comm.rank != 0 || comm.size == 1) return;
  static std::FILE* const file = std::fopen(path, "w");
  const std::lock_guard lock(fake().mutex);
  if (fake().reported == "nothing") return;
  std::fprintf(file, "host:1:1 [0] NCCL INFO AllReduce: %zu Bytes -> Algo %s proto LL channel{Lo..Hi}={0..1}\n", bytes,
               fake().reported.c_str());
  std::fflush(file);
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = fake().nccl;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote error" : result == ncclSystemError ? "system error" : "some error";
}
const char* ncclGetLastError(ncclComm_t) {
  static thread_local std::string words;
  const std::lock_guard lock(fake().mutex);
  return (words = fake().message).c_str();
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::snprintf(id->internal, sizeof id->internal, "id-of-%d", static_cast<int>(getpid()));
  return call("ncclGetUniqueId", "interface " + variable("NCCL_SOCKET_IFNAME"));
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  *comm = new ncclComm;
  (*comm)->rank = rank;
  (*comm)->size = size;
  return call("ncclCommInitRankConfig",
              "rank " + std::to_string(rank) + " of " + std::to_string(size) + " " + id.internal + " blocking " +
                  std::to_string(config->blocking) + " NCCL_ALGO " + variable("NCCL_ALGO"),
              *comm);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const int turns = comm->turns;
  if (turns > 0) --comm->turns;
  *state = turns != 0 ? ncclInProgress : static_cast<ncclResult_t>(fake().async_error.load());
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return call("ncclCommFinalize", "", comm);
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  while (fake().destroy_hangs) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  delete comm;
  return call("ncclCommDestroy");
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  delete comm;
  fake().gpu_hangs = false;
  return call("ncclCommAbort");
}
ncclResult_t ncclMemAlloc(void** memory, size_t size) {
  *memory = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  return call("ncclMemAlloc", std::to_string(size));
}
ncclResult_t ncclMemFree(void* memory) {
  std::free(memory);
  return call("ncclMemFree");
}
ncclResult_t ncclCommRegister(ncclComm_t comm, void*, size_t size, void** handle) {
  *handle = comm;
  return call("ncclCommRegister", std::to_string(size));
}
ncclResult_t ncclCommDeregister(ncclComm_t, void*) {
  return call("ncclCommDeregister");
}

ncclResult_t ncclAllReduce(const void*, void*, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  report(count, *comm);
  return call("ncclAllReduce", of(count, type, op, stream), comm);
}
ncclResult_t ncclBroadcast(const void*, void*, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return call("ncclBroadcast", of(count, type, root, stream), comm);
}
ncclResult_t ncclAllGather(const void*, void*, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return call("ncclAllGather", of(count, type, 0, stream), comm);
}
ncclResult_t ncclReduceScatter(const void*, void*, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  return call("ncclReduceScatter", of(count, type, op, stream), comm);
}
}
