#include "comm/call.hpp"

#include <bit>

namespace ddprun::comm {
namespace {

constexpr const char* kKinds[] = {"allreduce", "broadcast", "allgather", "reduce_scatter", "barrier", "exchange"};

[[noreturn]] void refuse(const CommBackend& backend, const CallShape& shape, CommStatus status,
                         const std::string& why) {
  throw CommError(status, prefix(backend, shape) + why);
}

// Half-open ranges of addresses.
bool overlap(const void* a, uint64_t a_bytes, const void* b, uint64_t b_bytes) {
  const auto a_first = reinterpret_cast<uintptr_t>(a), b_first = reinterpret_cast<uintptr_t>(b);
  return a_first < b_first + b_bytes && b_first < a_first + a_bytes;
}

bool overlap_wrongly(const CommBackend& backend, Kind kind, const Collective& what) {
  const auto ranks = static_cast<uint64_t>(backend.size());
  const uint64_t block = what.count * size_of(what.dtype);
  const uint64_t send_bytes = kind == Kind::reduce_scatter ? block * ranks : block;
  const uint64_t recv_bytes = kind == Kind::allgather ? block * ranks : block;
  const uint64_t shift = kind == Kind::allreduce ? 0 : block * static_cast<uint64_t>(backend.rank());
  const auto *send = static_cast<const char*>(what.send), *recv = static_cast<const char*>(what.recv);
  const bool in_place = kind == Kind::reduce_scatter ? recv == send + shift : send == recv + shift;
  return !in_place && overlap(send, send_bytes, recv, recv_bytes);
}

bool is_below(auto value, std::size_t count) {
  return static_cast<uint32_t>(value) < count;
}

void check_memory(const CommBackend& backend, const CallShape& shape) {
  if (!is_below(shape.memory, kMemoryCount)) refuse(backend, shape, CommStatus::invalid, "no such memory");
  const bool is_host = shape.memory == Memory::host;
  if (is_host ? backend.capabilities().host : backend.capabilities().cuda) return;
  refuse(backend, shape, CommStatus::unsupported,
         std::string("the backend takes no ") + (is_host ? "host" : "CUDA") + " memory");
}

}  // namespace

double bus_factor(Kind kind, int ranks) {
  const double n = ranks;
  if (kind == Kind::allreduce) return 2 * (n - 1) / n;
  return splits_in_blocks(kind) ? (n - 1) / n : 1;
}

const char* name_of(Kind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

CallShape shape_of(Kind kind, uint64_t number, const Collective& call) {
  return {.number = number,
          .count = call.count,
          .bucket = call.bucket,
          .root = call.root,
          .kind = kind,
          .dtype = call.dtype,
          .op = call.op,
          .memory = call.memory};
}

CallShape shape_of(Kind kind, uint64_t number, const Exchange& call) {
  return {.number = number, .kind = kind, .memory = call.memory};
}

bool has_data(const CallShape& shape) {
  return shape.kind < Kind::barrier && is_below(shape.dtype, kDTypeCount) && is_below(shape.op, kOpCount);
}

std::string describe(const CallShape& shape) {
  std::string text = name_of(shape.kind);
  if (shape.number > 0) text += ' ' + std::to_string(shape.number);
  if (!has_data(shape)) return text;
  text += std::string(" (") + name_of(shape.dtype) + " x " + std::to_string(shape.count);
  if (reduces(shape.kind)) text += std::string(", ") + name_of(shape.op);
  if (shape.kind == Kind::broadcast) text += ", root " + std::to_string(shape.root);
  if (shape.memory == Memory::cuda) text += ", cuda";
  if (shape.bucket >= 0) text += ", bucket " + std::to_string(shape.bucket);
  return text + ")";
}

std::string prefix(const CommBackend& backend, const CallShape& shape) {
  return backend.name() + ": rank " + std::to_string(backend.rank()) + ": " + describe(shape) + ": ";
}

void check(const CommBackend& backend, const CallShape& shape, const Collective& call) {
  if (shape.kind == Kind::barrier) return;
  const auto require = [&](bool holds, const char* why, CommStatus status = CommStatus::invalid) {
    if (!holds) refuse(backend, shape, status, why);
  };
  require(is_below(call.dtype, kDTypeCount), "no such dtype");
  require(is_below(call.op, kOpCount), "no such op");
  check_memory(backend, shape);
  if (call.root < 0 || call.root >= backend.size()) {
    refuse(backend, shape, CommStatus::invalid, "the group has ranks 0 to " + std::to_string(backend.size() - 1));
  }
  if (reduces(shape.kind)) {
    require(call.op != Op::avg || is_floating(call.dtype), "avg is for floating types only", CommStatus::unsupported);
  }
  if (call.canonical_order) {
    require(shape.kind == Kind::allreduce && call.op == Op::sum &&
                std::has_single_bit(static_cast<unsigned>(backend.size())) &&
                backend.capabilities().has_canonical_order(call.dtype, call.memory),
            "no chosen algorithm adds this in canonical order", CommStatus::unsupported);
  }
  uint64_t bytes = 0;  // of the larger buffer
  const uint64_t element = size_of(call.dtype) * static_cast<uint64_t>(backend.size());
  require(!__builtin_mul_overflow(call.count, element, &bytes) && bytes >> 63 == 0, "count is too large");
  if (call.count == 0) return;
  require(call.recv != nullptr, "recv is null");
  if (shape.kind == Kind::broadcast) return;
  require(call.send != nullptr, "send is null");
  require(!overlap_wrongly(backend, shape.kind, call), "send and recv overlap, and not exactly in place");
}

void check(const CommBackend& backend, const CallShape& shape, const Exchange& call) {
  const auto require = [&](bool holds, const char* why) {
    if (!holds) refuse(backend, shape, CommStatus::invalid, why);
  };
  check_memory(backend, shape);
  for (const auto& blocks : {call.send, call.recv}) {
    require(blocks.size() == static_cast<std::size_t>(backend.size()), "send and recv need one block for each rank");
    for (const Block& block : blocks) require(block.data != nullptr || block.bytes == 0, "a block is null");
  }
  const auto me = static_cast<std::size_t>(backend.rank());
  require(call.send[me].bytes == call.recv[me].bytes, "this rank's block for itself has two sizes");
}

Work start(CommBackend& backend, Kind kind, const Collective& what) {
  switch (kind) {
    case Kind::allreduce: return backend.allreduce(what);
    case Kind::broadcast: return backend.broadcast(what);
    case Kind::allgather: return backend.allgather(what);
    case Kind::reduce_scatter: return backend.reduce_scatter(what);
    case Kind::barrier:
    case Kind::exchange: break;
  }
  return backend.barrier();
}

}  // namespace ddprun::comm
