#include "comm/call.hpp"

#include <array>
#include <utility>

#include "base/error.hpp"

namespace ddprun::comm {
namespace {

struct DTypeFacts {
  const char* name;
  std::size_t size;
  bool floating;
};
constexpr std::array<DTypeFacts, 9> kDTypes{{{"float16", 2, true},
                                             {"bfloat16", 2, true},
                                             {"float32", 4, true},
                                             {"float64", 8, true},
                                             {"int8", 1, false},
                                             {"int16", 2, false},
                                             {"int32", 4, false},
                                             {"int64", 8, false},
                                             {"uint8", 1, false}}};
constexpr std::array<const char*, 5> kOps{"sum", "min", "max", "product", "avg"};
constexpr std::array<const char*, 5> kKinds{"allreduce", "broadcast", "allgather", "reduce_scatter", "barrier"};

const DTypeFacts& facts(DType dtype) {
  return kDTypes.at(static_cast<std::size_t>(dtype));
}

bool reduces(Kind kind) {
  return kind == Kind::allreduce || kind == Kind::reduce_scatter;
}

class Finished : public Request {
 public:
  explicit Finished(Served served) : served_(std::move(served)) {}
  bool test() override { return true; }
  Served wait(std::chrono::milliseconds) override { return std::move(served_); }

 private:
  Served served_;
};

}  // namespace

std::size_t size_of(DType dtype) {
  return facts(dtype).size;
}
const char* name_of(DType dtype) {
  return facts(dtype).name;
}
const char* name_of(Op op) {
  return kOps.at(static_cast<std::size_t>(op));
}
const char* name_of(Kind kind) {
  return kKinds.at(static_cast<std::size_t>(kind));
}

std::string describe(const Call& call) {
  std::string text = std::string(name_of(call.kind)) + ' ' + std::to_string(call.sequence);
  if (call.kind == Kind::barrier) return text;
  text += std::string(" (") + name_of(call.dtype) + " x " + std::to_string(call.count);
  if (reduces(call.kind)) text += std::string(", ") + name_of(call.op);
  if (call.kind == Kind::broadcast) text += ", root " + std::to_string(call.root);
  if (call.memory == Memory::cuda) text += ", cuda";
  return text + ")";
}

std::string prefix(const std::string& backend, int rank, const Call& call) {
  return backend + ": rank " + std::to_string(rank) + ": " + describe(call) + ": ";
}

RequestPtr CallBackend::allreduce(const void* send, const Buffer& recv, Op op) {
  return submit({.kind = Kind::allreduce,
                 .dtype = recv.dtype,
                 .op = op,
                 .memory = recv.memory,
                 .count = recv.count,
                 .send = send,
                 .recv = recv.data,
                 .stream = recv.stream});
}

RequestPtr CallBackend::broadcast(const Buffer& buffer, int root) {
  return submit({.kind = Kind::broadcast,
                 .dtype = buffer.dtype,
                 .root = root,
                 .memory = buffer.memory,
                 .count = buffer.count,
                 .recv = buffer.data,
                 .stream = buffer.stream});
}

RequestPtr CallBackend::allgather(const void* send, const Buffer& recv) {
  const auto ranks = static_cast<std::size_t>(size());
  const Call call{.kind = Kind::allgather,
                  .sequence = sequence_ + 1,
                  .dtype = recv.dtype,
                  .memory = recv.memory,
                  .count = recv.count / ranks,
                  .send = send,
                  .recv = recv.data,
                  .stream = recv.stream};
  if (recv.count % ranks != 0) {
    throw Error(ExitCode::plugin, prefix(call) + "recv holds " + std::to_string(recv.count) + " elements, which " +
                                      std::to_string(ranks) + " ranks do not divide");
  }
  return submit(call);
}

RequestPtr CallBackend::reduce_scatter(const void* send, const Buffer& recv, Op op) {
  return submit({.kind = Kind::reduce_scatter,
                 .dtype = recv.dtype,
                 .op = op,
                 .memory = recv.memory,
                 .count = recv.count,
                 .send = send,
                 .recv = recv.data,
                 .stream = recv.stream});
}

RequestPtr CallBackend::barrier() {
  return submit({.kind = Kind::barrier});
}

RequestPtr CallBackend::submit(Call call) {
  call.sequence = ++sequence_;
  require_valid(call);
  return start(call);
}

void CallBackend::require_valid(const Call& call) const {
  if (call.kind == Kind::barrier) return;
  const auto refuse = [&](const std::string& why) { throw Error(ExitCode::plugin, prefix(call) + why); };
  if (call.root < 0 || call.root >= size()) refuse("the group has ranks 0 to " + std::to_string(size() - 1));
  if (reduces(call.kind) && call.op == Op::avg && !facts(call.dtype).floating) {
    refuse("avg is for floating types only");
  }
  const bool takes = call.memory == Memory::host ? capabilities().host : capabilities().cuda;
  if (!takes)
    refuse(std::string("the backend takes no ") + (call.memory == Memory::host ? "host" : "CUDA") + " memory");
  if (call.count == 0) return;
  if (call.recv == nullptr) refuse("recv is null");
  if (call.send == nullptr && call.kind != Kind::broadcast) refuse("send is null");
}

RequestPtr forward(CommBackend& backend, const Call& call) {
  const auto ranks = static_cast<std::size_t>(backend.size());
  Buffer recv{call.recv, call.count, call.dtype, call.memory, call.stream};
  switch (call.kind) {
    case Kind::allreduce: return backend.allreduce(call.send, recv, call.op);
    case Kind::broadcast: return backend.broadcast(recv, call.root);
    case Kind::allgather: recv.count *= ranks; return backend.allgather(call.send, recv);
    case Kind::reduce_scatter: return backend.reduce_scatter(call.send, recv, call.op);
    case Kind::barrier: return backend.barrier();
  }
  throw Error(ExitCode::failure, "comm: a collective of unknown kind");
}

RequestPtr finished(Served served) {
  return std::make_unique<Finished>(std::move(served));
}

}  // namespace ddprun::comm
