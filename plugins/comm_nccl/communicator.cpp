#include "communicator.hpp"

namespace ddprun::nccl_backend {
namespace {

// In the order of DType and Op; ncclNumTypes is none.
constexpr ncclDataType_t kTypes[kDTypeCount] = {ncclFloat16,  ncclBfloat16, ncclFloat32, ncclFloat64, ncclInt8,
                                                ncclNumTypes, ncclInt32,    ncclInt64,   ncclUint8};
constexpr ncclRedOp_t kOps[kOpCount] = {ncclSum, ncclMin, ncclMax, ncclProd, ncclAvg};

ncclDataType_t nccl_type(DType dtype) {
  const auto type = kTypes[static_cast<std::size_t>(dtype)];
  if (type == ncclNumTypes) throw CommError(CommStatus::unsupported, "NCCL does not reduce this dtype");
  return type;
}

// Broadcast and allgather move bytes, so they support every dtype.
std::size_t bytes_of(const Collective& call) {
  return call.count * size_of(call.dtype);
}

}  // namespace

NcclCommunicator::NcclCommunicator(const Host& host)
    : CommBackend(host),
      host_(host),
      algorithm_(algorithm_named(host.algorithm())),
      settings_(Settings::of(host)),
      device_(find_device(host)),
      session_(joined()) {}

std::shared_ptr<Session> NcclCommunicator::joined() const {
  const OnDevice here(device_.ordinal);
  // Creating the GPU's context takes a varying time, so it is done before the ranks wait for one another in NCCL.
  check("using the device", cudaFree(nullptr));
  const std::string forced = forced_algorithm(algorithm_, host_.deterministic());
  if (compare_ranks(host_, device_, settings_, forced)) stay_on_loopback(host_);
  host_.log(host_.rank() == 0 ? DDPRUN_LOG_INFO : DDPRUN_LOG_DEBUG, device_.versions);
  const AlgorithmScope scope(forced);
  // After this, every rank has set its environment variables, and NCCL may read the environment.
  const auto processes = host::processes_of(host_);
  return Session::join(host_, device_, processes, exchange_id(host_));
}

template <class Launch>
void NcclCommunicator::queue(InflightOp& op, Launch&& launch) {
  session_->run(op.name, [&](ncclComm_t comm) { return launch(comm, session_->stream()); });
  if (const auto result = cudaEventRecord(op.done.get(), session_->stream()); result != cudaSuccess) {
    session_->fail(failure_of(op.name, result));
  }
  session_->enter(op);
}

template <class Launch>
Work NcclCommunicator::start(const char* name, Algorithm algorithm, const Collective& call, Launch&& launch) {
  if (call.count == 0) {
    session_->async_error();
    nothing_.info.algorithm = name_of(algorithm);
    return {*this, nothing_};
  }
  const OnDevice here(device_.ordinal);
  InflightOp& op = session_->acquire();
  op.name = name;
  op.info = {name_of(algorithm), "nccl"};
  op.stream = static_cast<cudaStream_t>(call.stream);
  cudaError_t ordered = cudaEventRecord(op.ready.get(), op.stream);
  if (ordered == cudaSuccess) ordered = cudaStreamWaitEvent(session_->stream(), op.ready.get(), 0);
  if (ordered != cudaSuccess) session_->fail(failure_of(name, ordered));
  queue(op, launch);
  return {*this, op};
}

Work NcclCommunicator::allreduce(const Collective& call) {
  return start("allreduce", algorithm_, call, [&](ncclComm_t comm, cudaStream_t stream) {
    return ncclAllReduce(call.send, call.recv, call.count, nccl_type(call.dtype),
                         kOps[static_cast<std::size_t>(call.op)], comm, stream);
  });
}

Work NcclCommunicator::broadcast(const Collective& call) {
  return start("broadcast", Algorithm::nccl, call, [&](ncclComm_t comm, cudaStream_t stream) {
    return ncclBroadcast(call.recv, call.recv, bytes_of(call), ncclUint8, call.root, comm, stream);
  });
}

Work NcclCommunicator::allgather(const Collective& call) {
  return start("allgather", Algorithm::nccl, call, [&](ncclComm_t comm, cudaStream_t stream) {
    return ncclAllGather(call.send, call.recv, bytes_of(call), ncclUint8, comm, stream);
  });
}

Work NcclCommunicator::reduce_scatter(const Collective& call) {
  return start("reduce_scatter", Algorithm::nccl, call, [&](ncclComm_t comm, cudaStream_t stream) {
    return ncclReduceScatter(call.send, call.recv, call.count, nccl_type(call.dtype),
                             kOps[static_cast<std::size_t>(call.op)], comm, stream);
  });
}

// All blocks at once, this rank's own too. NCCL keeps an error of a call within a group for the end of the group.
Work NcclCommunicator::exchange(const Exchange& call) {
  const Collective group = {.count = 1, .stream = call.stream};
  return start("exchange", Algorithm::nccl, group, [&](ncclComm_t comm, cudaStream_t stream) {
    ncclGroupStart();
    for (int rank = 0; rank < size(); ++rank) {
      const Block &out = call.send[static_cast<std::size_t>(rank)], &in = call.recv[static_cast<std::size_t>(rank)];
      if (out.bytes > 0) ncclSend(out.data, out.bytes, ncclUint8, rank, comm, stream);
      if (in.bytes > 0) ncclRecv(in.data, in.bytes, ncclUint8, rank, comm, stream);
    }
    return ncclGroupEnd();
  });
}

// Not on the caller's stream: a barrier synchronises the processes, so wait blocks.
Work NcclCommunicator::barrier() {
  const OnDevice here(device_.ordinal);
  InflightOp& op = session_->acquire();
  op.name = "barrier";
  op.info = {"nccl", "nccl"};
  op.is_barrier = true;
  queue(op, [&](ncclComm_t comm, cudaStream_t stream) {
    return ncclAllReduce(session_->word(), session_->word(), 1, ncclInt32, ncclSum, comm, stream);
  });
  return {*this, op};
}

bool NcclCommunicator::test(Request& request) {
  session_->async_error();
  if (&request == &nothing_) return true;
  const auto& op = static_cast<const InflightOp&>(request);
  return !op.is_barrier || op.done.state() != cudaErrorNotReady;
}

ExecutionInfo NcclCommunicator::wait(Request& request, std::chrono::milliseconds timeout) {
  const ExecutionInfo info = request.info;
  if (&request == &nothing_) {
    session_->async_error();
    return info;
  }
  auto& op = static_cast<InflightOp&>(request);
  const OnDevice here(device_.ordinal);
  const auto release = [this](InflightOp* waited) { session_->release(*waited); };
  const std::unique_ptr<InflightOp, decltype(release)> taken_back(&op, release);
  session_->async_error();
  if (op.is_barrier) {
    session_->wait_for(op, timeout);
  } else if (const auto result = cudaStreamWaitEvent(op.stream, op.done.get(), 0); result != cudaSuccess) {
    session_->fail(failure_of(op.name, result));
  }
  return info;
}

std::shared_ptr<void> NcclCommunicator::allocate(std::size_t bytes) {
  const OnDevice here(device_.ordinal);
  return {session_->alloc(bytes), [this](void* memory) {
            const OnDevice there(device_.ordinal);
            session_->free(memory);
          }};
}

}  // namespace ddprun::nccl_backend
