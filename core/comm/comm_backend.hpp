// comm: the CommBackend interface and what stands behind it: the plugin adapter, solo (world 1), the check of
// collectives across ranks, and the fault decorator for tests. Torch-free.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ddprun::comm {

// Same values as in ddprun/plugin/comm_plugin.h.
enum class DType : int32_t { float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8 };
enum class Op : int32_t { sum, min, max, product, avg };
enum class Memory : int32_t { host, cuda };

// Size of one element in bytes; its name as PyTorch spells it.
std::size_t size_of(DType dtype);
const char* name_of(DType dtype);
const char* name_of(Op op);

// A piece of memory that somebody else owns. count is in elements.
struct Buffer {
  void* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::float32;
  Memory memory = Memory::host;
  void* stream = nullptr;  // cudaStream_t, for stream-ordered backends
};

// What served a request, as the backend reports it.
struct Served {
  std::string algorithm;
  std::string transport;
};

struct Algorithm {
  std::string name;
  uint32_t dtypes = 0;    // bit (1 << DType)
  uint32_t ops = 0;       // bit (1 << Op)
  uint32_t memory = ~0U;  // bit (1 << Memory), as far as the backend takes it

  bool takes(Memory kind) const { return (memory >> static_cast<uint32_t>(kind) & 1) != 0; }
};

struct Capabilities {
  bool host = false;
  bool cuda = false;
  bool blocking = false;  // a collective has ended when its call returns
  bool stream_ordered = false;
  bool capture = false;                // such a collective may be part of a CUDA graph
  bool alloc = false;                  // allocate() gives memory that moves faster than malloc's
  Memory alloc_memory = Memory::host;  // what allocate() gives
  std::vector<Algorithm> algorithms;
};

// A collective under way. Destroying one that was not waited for is allowed only after abort().
class Request {
 public:
  virtual ~Request() = default;
  // True when wait would return at once.
  virtual bool test() = 0;
  // Throws ddprun::Error with ExitCode::peer on timeout, a lost peer, abort or disagreement. At most once.
  virtual Served wait(std::chrono::milliseconds timeout) = 0;
};
using RequestPtr = std::unique_ptr<Request>;

// The collectives of one group of ranks. Threads: one at a time, abort() excepted. All ranks call the same collectives
// in the same order with the same count, dtype and op. Buffers stay alive and untouched until their request was waited
// for. Every function but abort throws ddprun::Error: plugin (3) for what the backend cannot do, peer (5) for what went
// wrong between the ranks, failure (1) for the rest.
class CommBackend {
 public:
  virtual ~CommBackend() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& name() const = 0;
  virtual const Capabilities& capabilities() const = 0;

  // recv[i] = op over the ranks of send[i]. send may equal recv.data (in place).
  virtual RequestPtr allreduce(const void* send, const Buffer& recv, Op op) = 0;
  // buffer of `root` to all.
  virtual RequestPtr broadcast(const Buffer& buffer, int root) = 0;
  // recv = send of rank 0, 1, ...: recv.count == size() * (count of send). In place: send == recv + rank * count.
  virtual RequestPtr allgather(const void* send, const Buffer& recv) = 0;
  // recv = block `rank` of the reduction of send, which holds size() * recv.count elements. In place likewise.
  virtual RequestPtr reduce_scatter(const void* send, const Buffer& recv, Op op) = 0;
  virtual RequestPtr barrier() = 0;

  // Throws what the next collective would, where the backend has failed or was aborted: for one that is ordered on
  // streams, and has got on since its last call. Waits for nobody; no peer takes part.
  virtual void throw_if_failed() {}

  // Ends every blocked and every later call with an error. Any thread, any number of times.
  virtual void abort() noexcept = 0;

  // Memory that this backend moves fastest, page-aligned, of the kind capabilities().alloc_memory; malloc's where it
  // has no wish. Collective: same sizes in the same order on all ranks. Freed when the returned owner goes, which must
  // be before the backend does.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
};

}  // namespace ddprun::comm
