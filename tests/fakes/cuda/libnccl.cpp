// A fake libnccl.so.2: records every call, fails as set by the test, and reduces between the ranks of one host on a
// separate thread, while the streams of gpu.hpp wait. If the test plays all other ranks itself (Fake::alone), nothing
// is moved.
#include <nccl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "fakes/cuda/fake.hpp"
#include "gpu.hpp"
#include "nccl_peers.hpp"
#include "nccl_reduce.hpp"

namespace gpu = ddprun::fake_gpu;
namespace nccl = ddprun::fake_nccl;

struct ncclComm {
  int rank = 0;
  int size = 0;
  std::atomic<int> turns{0};  // polls left until the call has completed
  std::string algorithm;      // forced by NCCL_ALGO at creation
  std::shared_ptr<nccl::Peers> peers;
};

namespace {

using ddprun::testing::Fake;
using Texts = std::vector<std::string>;
using Blocks = std::vector<nccl::Block>;

Fake& fake() {
  return *ddprun_fake();
}

// What a thread sends and receives in a group of calls.
struct Group {
  ncclComm_t comm = nullptr;  // of its calls
  cudaStream_t stream = nullptr;
  Blocks sent{}, received{};
};
thread_local Group group;

// The result of the call `name`; `what` follows it in the record.
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

ncclResult_t failed(ncclResult_t result, const std::string& words) {
  const std::lock_guard lock(fake().mutex);
  fake().message = words;
  return result;
}

std::string of(size_t count, int type, int op, cudaStream_t stream) {
  return "count " + std::to_string(count) + " type " + std::to_string(type) + " op " + std::to_string(op) + " stream " +
         std::to_string(reinterpret_cast<uintptr_t>(stream));
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "-" : value;
}

// As NCCL reports it about TUNING: on the first of several ranks, in a file for each process.
void report(size_t bytes, const ncclComm& comm) {
  std::string path = variable("NCCL_DEBUG_FILE");
  if (variable("NCCL_DEBUG_SUBSYS") != "TUNING" || path == "-" || comm.rank != 0 || comm.size == 1) return;
  if (const size_t at = path.find("%p"); at != std::string::npos) path.replace(at, 2, std::to_string(::getpid()));
  static std::ofstream file(path);
  file << "host:1:1 [0] NCCL INFO AllReduce: " << bytes << " Bytes -> Algo " << comm.algorithm
       << " proto LL channel{Lo..Hi}={0..1}" << std::endl;
}

// Memory of this rank: what it contributes, and what it gets.
struct Part {
  const void* send;
  size_t sent;
  void* recv;
  size_t received;
};

std::string read(const Part& part) {
  return {static_cast<const char*>(part.send), part.sent};
}

auto writing(const Part& part) {
  return [part](const std::string& result) { std::memcpy(part.recv, result.data(), result.size()); };
}

gpu::Stream stream_of(cudaStream_t stream) {
  return gpu::stream_of(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(stream)), gpu::current_device());
}

// Work on the stream that reads and writes these blocks. Throws Race.
auto queue_work(const std::string& name, gpu::Stream stream, const Blocks& reads, const Blocks& writes) {
  const auto work = gpu::queue_work(stream);
  gpu::note(gpu::name_of(stream) + " " + name);
  try {
    for (const auto& block : reads) gpu::access(stream, block.data, block.bytes, false, name);
    for (const auto& block : writes) gpu::access(stream, block.data, block.bytes, true, name);
  } catch (...) {
    gpu::finish(work);
    throw;
  }
  return work;
}

// The collective ncclX, with X in `name`. `op`: or the root.
ncclResult_t collective(const char* name, size_t count, ncclDataType_t type, int op, ncclComm_t comm,
                        cudaStream_t stream, const Part& part, nccl::Rule rule) try {
  const ncclResult_t result = call(std::string("nccl") + name, of(count, type, op, stream), comm);
  if (comm->peers == nullptr || (result != ncclSuccess && result != ncclInProgress)) return result;
  const std::string named = std::string(name) + " " + std::to_string(count * nccl::size_of(type)) + " bytes";
  const auto work = queue_work(named, stream_of(stream), {{const_cast<void*>(part.send), part.sent, comm->rank}},
                               {{part.recv, part.received, comm->rank}});
  const auto read_in_turn = [work, part] {
    gpu::wait_for_turn(work);
    return read(part);
  };
  comm->peers->queue(
      nccl::Collective{named, read_in_turn, std::move(rule), writing(part), [work] { gpu::finish(work); }});
  return result;
} catch (const gpu::Race& race) {
  return failed(ncclUnhandledCudaError, race.what());
}

// Queues the thread's group on its stream. Throws Race.
void queue_group() {
  const auto work = queue_work("Exchange", stream_of(group.stream), group.sent, group.received);
  group.comm->peers->queue(
      nccl::Exchange{[work] { gpu::wait_for_turn(work); }, group.sent, group.received, [work] { gpu::finish(work); }});
}

// All parts, concatenated.
std::string joined(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += part;
  return all;
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
  static std::atomic<int> ids{0};
  const int number = ids++;
  std::snprintf(id->internal, sizeof id->internal, number == 0 ? "id-of-%d" : "id-of-%d-%d", static_cast<int>(getpid()),
                number);
  return call("ncclGetUniqueId", "interface " + variable("NCCL_SOCKET_IFNAME"));
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  *comm = new ncclComm;
  (*comm)->rank = rank;
  (*comm)->size = size;
  (*comm)->algorithm = variable("NCCL_ALGO") == "allreduce:tree" ? "TREE" : "RING";
  if (!fake().alone) (*comm)->peers = std::make_shared<nccl::Peers>(id.internal, rank, size);
  return call("ncclCommInitRankConfig",
              "rank " + std::to_string(rank) + " of " + std::to_string(size) + " " + id.internal + " blocking " +
                  std::to_string(config->blocking) + " NCCL_ALGO " + variable("NCCL_ALGO"),
              *comm);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const int turns = comm->turns;
  if (turns > 0) --comm->turns;
  *state = turns != 0 ? ncclInProgress : static_cast<ncclResult_t>(fake().async_error.load());
  if (*state != ncclSuccess || comm->peers == nullptr) return ncclSuccess;
  *state = comm->peers->state();
  if (*state != ncclSuccess && *state != ncclInProgress) failed(*state, comm->peers->words());
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (comm->peers != nullptr) comm->peers->flush();
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
  std::memset(*memory, 0xff, size);
  gpu::allocated(*memory, size, gpu::stream_of(0, gpu::current_device()));
  return call("ncclMemAlloc", std::to_string(size));
}
ncclResult_t ncclMemFree(void* memory) {
  gpu::freed(memory, [memory] { std::free(memory); });
  return call("ncclMemFree");
}
ncclResult_t ncclCommRegister(ncclComm_t comm, void*, size_t size, void** handle) {
  *handle = comm;
  return call("ncclCommRegister", std::to_string(size));
}
ncclResult_t ncclCommDeregister(ncclComm_t, void*) {
  return call("ncclCommDeregister");
}

ncclResult_t ncclAllReduce(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  const size_t bytes = count * nccl::size_of(type);
  report(bytes, *comm);
  return collective("AllReduce", count, type, op, comm, stream, {send, bytes, recv, bytes},
                    [=](const Texts& parts) { return Texts(parts.size(), nccl::reduced(parts, count, type, op)); });
}
ncclResult_t ncclBroadcast(const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  const size_t bytes = count * nccl::size_of(type);
  return collective("Broadcast", count, type, root, comm, stream, {send, comm->rank == root ? bytes : 0, recv, bytes},
                    [](const Texts& parts) { return Texts(parts.size(), joined(parts)); });
}
ncclResult_t ncclAllGather(const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  const size_t bytes = count * nccl::size_of(type);
  return collective("AllGather", count, type, 0, comm, stream,
                    {send, bytes, recv, bytes * static_cast<size_t>(comm->size)},
                    [](const Texts& parts) { return Texts(parts.size(), joined(parts)); });
}
// One group sends at most one block to each rank, and receives at most one from each.
ncclResult_t ncclGroupStart() {
  group = {};
  return call("ncclGroupStart");
}
ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  group.comm = comm;
  group.stream = stream;
  group.sent.push_back({const_cast<void*>(data), count * nccl::size_of(type), peer});
  return call("ncclSend", of(count, type, peer, stream), comm);
}
ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  group.comm = comm;
  group.stream = stream;
  group.received.push_back({data, count * nccl::size_of(type), peer});
  return call("ncclRecv", of(count, type, peer, stream), comm);
}
ncclResult_t ncclGroupEnd() try {
  const ncclResult_t result = call("ncclGroupEnd");
  const bool failing = result != ncclSuccess && result != ncclInProgress;
  if (!failing && group.comm != nullptr && group.comm->peers != nullptr) queue_group();
  return result;
} catch (const gpu::Race& race) {
  return failed(ncclUnhandledCudaError, race.what());
}
// `count` is per rank of the result.
ncclResult_t ncclReduceScatter(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  const size_t bytes = count * nccl::size_of(type);
  return collective("ReduceScatter", count, type, op, comm, stream,
                    {send, bytes * static_cast<size_t>(comm->size), recv, bytes}, [=](const Texts& parts) {
                      const std::string all = nccl::reduced(parts, count * parts.size(), type, op);
                      Texts shares;
                      for (size_t rank = 0; rank < parts.size(); ++rank)
                        shares.push_back(all.substr(rank * bytes, bytes));
                      return shares;
                    });
}
}
