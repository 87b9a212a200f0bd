#include "comm/call.hpp"

namespace ddprun::comm {
namespace {

constexpr const char* kKinds[] = {"allreduce", "broadcast", "allgather", "reduce_scatter", "barrier"};

[[noreturn]] void refuse(const CommBackend& backend, const Call& call, CommStatus status, const std::string& why) {
  throw CommError(status, prefix(backend, call) + why);
}

// Half-open ranges of addresses.
bool overlap(const void* a, uint64_t a_bytes, const void* b, uint64_t b_bytes) {
  const auto a_first = reinterpret_cast<uintptr_t>(a), b_first = reinterpret_cast<uintptr_t>(b);
  return a_first < b_first + b_bytes && b_first < a_first + a_bytes;
}

bool overlap_wrongly(const CommBackend& backend, const Call& call) {
  const Collective& what = call.what;
  const auto ranks = static_cast<uint64_t>(backend.size());
  const uint64_t block = what.count * size_of(what.dtype);
  const uint64_t send_bytes = call.kind == Kind::reduce_scatter ? block * ranks : block;
  const uint64_t recv_bytes = call.kind == Kind::allgather ? block * ranks : block;
  const uint64_t shift = call.kind == Kind::allreduce ? 0 : block * static_cast<uint64_t>(backend.rank());
  const auto *send = static_cast<const char*>(what.send), *recv = static_cast<const char*>(what.recv);
  const bool in_place = call.kind == Kind::reduce_scatter ? recv == send + shift : send == recv + shift;
  return !in_place && overlap(send, send_bytes, recv, recv_bytes);
}

template <class Enum>
bool is_below(Enum value, std::size_t count) {
  return static_cast<uint32_t>(value) < count;
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

std::string describe(const Call& call) {
  const Collective& what = call.what;
  std::string text = std::string(name_of(call.kind)) + ' ' + std::to_string(call.number);
  if (call.kind == Kind::barrier || !is_below(what.dtype, kDTypeCount) || !is_below(what.op, kOpCount)) return text;
  text += std::string(" (") + name_of(what.dtype) + " x " + std::to_string(what.count);
  if (reduces(call.kind)) text += std::string(", ") + name_of(what.op);
  if (call.kind == Kind::broadcast) text += ", root " + std::to_string(what.root);
  if (what.memory == Memory::cuda) text += ", cuda";
  if (what.bucket >= 0) text += ", bucket " + std::to_string(what.bucket);
  return text + ")";
}

std::string prefix(const CommBackend& backend, const Call& call) {
  return backend.name() + ": rank " + std::to_string(backend.rank()) + ": " + describe(call) + ": ";
}

void check(const CommBackend& backend, const Call& call) {
  if (call.kind == Kind::barrier) return;
  const Collective& what = call.what;
  const auto require = [&](bool holds, const char* why, CommStatus status = CommStatus::invalid) {
    if (!holds) refuse(backend, call, status, why);
  };
  require(is_below(what.dtype, kDTypeCount), "no such dtype");
  require(is_below(what.op, kOpCount), "no such op");
  require(is_below(what.memory, 2), "no such memory");
  if (what.root < 0 || what.root >= backend.size()) {
    refuse(backend, call, CommStatus::invalid, "the group has ranks 0 to " + std::to_string(backend.size() - 1));
  }
  if (reduces(call.kind)) {
    require(what.op != Op::avg || is_floating(what.dtype), "avg is for floating types only", CommStatus::unsupported);
  }
  const bool takes_host = what.memory != Memory::host || backend.capabilities().host;
  const bool takes_cuda = what.memory != Memory::cuda || backend.capabilities().cuda;
  require(takes_host, "the backend takes no host memory", CommStatus::unsupported);
  require(takes_cuda, "the backend takes no CUDA memory", CommStatus::unsupported);
  uint64_t bytes = 0;  // of the larger buffer
  const uint64_t element = size_of(what.dtype) * static_cast<uint64_t>(backend.size());
  require(!__builtin_mul_overflow(what.count, element, &bytes) && bytes >> 63 == 0, "count is too large");
  if (what.count == 0) return;
  require(what.recv != nullptr, "recv is null");
  if (call.kind == Kind::broadcast) return;
  require(what.send != nullptr, "send is null");
  require(!overlap_wrongly(backend, call), "send and recv overlap, and not exactly in place");
}

Work start(CommBackend& backend, Kind kind, const Collective& what) {
  switch (kind) {
    case Kind::allreduce: return backend.allreduce(what);
    case Kind::broadcast: return backend.broadcast(what);
    case Kind::allgather: return backend.allgather(what);
    case Kind::reduce_scatter: return backend.reduce_scatter(what);
    case Kind::barrier: break;
  }
  return backend.barrier();
}

}  // namespace ddprun::comm
