// One collective, as one rank calls it, and the values that describe its data. Torch-free, header-only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ddprun/plugin/comm_plugin.h"

namespace ddprun {

// One byte each, with the values of ddprun/plugin/comm_plugin.h; a GPU kernel that takes an int32_t needs a conversion.
enum class DType : uint8_t { float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8 };
// Integers wrap modulo 2^n. avg is the sum divided by the number of ranks, for floating types only.
enum class Op : uint8_t { sum, min, max, product, avg };
enum class Memory : uint8_t { host, cuda };
inline constexpr std::size_t kDTypeCount = 9, kOpCount = 5, kMemoryCount = 2;

// Names as PyTorch spells them; sizes in bytes.
constexpr const char* name_of(DType dtype) {
  constexpr const char* names[] = {"float16", "bfloat16", "float32", "float64", "int8",
                                   "int16",   "int32",    "int64",   "uint8"};
  return names[static_cast<std::size_t>(dtype)];
}
constexpr const char* name_of(Op op) {
  constexpr const char* names[] = {"sum", "min", "max", "product", "avg"};
  return names[static_cast<std::size_t>(op)];
}
constexpr const char* name_of(Memory memory) {
  return memory == Memory::cuda ? "cuda" : "host";
}
constexpr std::size_t size_of(DType dtype) {
  constexpr std::size_t sizes[] = {2, 2, 4, 8, 1, 2, 4, 8, 1};
  return sizes[static_cast<std::size_t>(dtype)];
}
constexpr bool is_floating(DType dtype) {
  return dtype <= DType::float64;
}

// A mask with one bit for each value: bits(DType::float32, DType::float64).
template <class... Values>
constexpr uint32_t bits(Values... values) {
  return ((uint32_t{1} << static_cast<uint32_t>(values)) | ...);
}

// One collective, as one rank calls it. `count` is in elements, may be 0, and is equal on all ranks. The buffers must
// not overlap, except exactly in place:
//   allreduce       send: count, recv: count            in place: send == recv
//   broadcast       recv: count; send unused            from `root` to all
//   allgather       send: count, recv: count * size     in place: send == recv + rank * count
//   reduce_scatter  send: count * size, recv: count     in place: recv == send + rank * count
struct Collective {
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;
  DType dtype = DType::float32;
  Op op = Op::sum;  // allreduce and reduce_scatter
  int root = 0;     // broadcast
  Memory memory = Memory::host;
  void* stream = nullptr;  // cudaStream_t, for stream-ordered backends
  // allreduce with Op::sum, if the number of ranks is a power of two: adds in the order of
  // ddprun_comm_algorithm::canonical_order. Capabilities::has_canonical_order says whether a backend can.
  bool canonical_order = false;
  // What the data is: the index of a gradient bucket, or -1 for other data. Before data moves, ddprun compares it over
  // the ranks. This finds ranks that reduce buckets of the same shape in a different order. Backends ignore it.
  int64_t bucket = -1;
};

// `data` and `bytes` of one rank in an exchange.
using Block = ddprun_block;

// An exchange, as one rank calls it: send[i] goes to rank i and is only read, recv[i] comes from rank i. Both have
// size() entries; comm_plugin.h has the rules.
struct Exchange {
  std::vector<Block> send, recv;
  Memory memory = Memory::host;  // of all blocks
  void* stream = nullptr;        // as in Collective
};

// How a collective was carried out. The backend owns the strings; they live as long as the backend.
struct ExecutionInfo {
  const char* algorithm = "";  // "ring"
  const char* transport = "";  // "tcp"
};

}  // namespace ddprun
