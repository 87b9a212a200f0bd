// mpi: the collectives of the MPI library that this plugin is built with. A collective blocks until it has ended;
// below, it is a non-blocking one of MPI, so that a deadline or an abort can end the wait. MPI works on buffers of the
// plugin, piece by piece: what it has begun cannot be taken back, and the caller's buffers must be free when a call has
// failed.
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "communicator.hpp"
#include "ddprun/plugin/comm_plugin.hpp"
#include "process.hpp"

namespace {

using ddprun::Collective;
using ddprun::DType;
using ddprun::Op;

MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case DType::float64: return MPI_DOUBLE;
    case DType::int32: return MPI_INT32_T;
    case DType::int64: return MPI_INT64_T;
    default: return MPI_FLOAT;  // ddprun refuses the types that are not declared
  }
}

MPI_Op op_of(Op op) {
  switch (op) {
    case Op::min: return MPI_MIN;
    case Op::max: return MPI_MAX;
    case Op::product: return MPI_PROD;
    default: return MPI_SUM;  // avg: divided afterwards
  }
}

template <typename T>
void divide(char* data, std::size_t count, int ranks) {
  auto* numbers = reinterpret_cast<T*>(data);
  for (std::size_t i = 0; i < count; ++i) numbers[i] /= static_cast<T>(ranks);
}

class Backend final : public ddprun::CommBackend {
 public:
  explicit Backend(const ddprun::Host& host)
      : CommBackend(host),
        ordered_(host.algorithm() == "ordered" || (host.algorithm() == "auto" && host.deterministic())),
        comm_(host, std::max<std::size_t>(host.options().size("piece"), ranks() * sizeof(double))) {
    if (host.deterministic() && !ordered_ && rank() == 0) {
      host.log(DDPRUN_LOG_WARNING,
               "MPI does not promise the order in which it adds; comm.algorithm = \"auto\" or "
               "\"ordered\" adds in the order of the ranks");
    }
  }

  ddprun::Work allreduce(const Collective& call) override {
    const std::size_t element = size_of(call.dtype);
    const MPI_Datatype type = type_of(call.dtype);
    in_pieces(call.count, ordered_ ? element * ranks() : element, [&](std::size_t first, std::size_t count) {
      std::memcpy(comm_.out(), sent(call) + first * element, count * element);
      const int n = static_cast<int>(count);
      if (ordered_) {
        comm_.run("MPI_Iallgather", MPI_Iallgather, comm_.out(), n, type, comm_.in(), n, type);
      } else {
        comm_.run("MPI_Iallreduce", MPI_Iallreduce, comm_.out(), comm_.in(), n, type, op_of(call.op));
      }
      take_reduced(call, first, count);
    });
    return {*this, ordered_ ? ordered_done_ : done_};
  }

  ddprun::Work reduce_scatter(const Collective& call) override {
    const std::size_t element = size_of(call.dtype);
    const MPI_Datatype type = type_of(call.dtype);
    in_pieces(call.count, element * ranks(), [&](std::size_t first, std::size_t count) {
      for (std::size_t block = 0; block < ranks(); ++block) {
        std::memcpy(comm_.out() + block * count * element, sent(call) + (block * call.count + first) * element,
                    count * element);
      }
      const int n = static_cast<int>(count);
      if (ordered_) {
        comm_.run("MPI_Ialltoall", MPI_Ialltoall, comm_.out(), n, type, comm_.in(), n, type);
      } else {
        comm_.run("MPI_Ireduce_scatter_block", MPI_Ireduce_scatter_block, comm_.out(), comm_.in(), n, type,
                  op_of(call.op));
      }
      take_reduced(call, first, count);
    });
    return {*this, ordered_ ? ordered_done_ : done_};
  }

  ddprun::Work broadcast(const Collective& call) override {
    in_pieces(call.count * size_of(call.dtype), 1, [&](std::size_t first, std::size_t bytes) {
      if (rank() == call.root) std::memcpy(comm_.out(), received(call) + first, bytes);
      comm_.run("MPI_Ibcast", MPI_Ibcast, comm_.out(), static_cast<int>(bytes), MPI_BYTE, call.root);
      if (rank() != call.root) std::memcpy(received(call) + first, comm_.out(), bytes);
    });
    return {*this, done_};
  }

  ddprun::Work allgather(const Collective& call) override {
    const std::size_t all = call.count * size_of(call.dtype);
    in_pieces(all, ranks(), [&](std::size_t first, std::size_t bytes) {
      std::memcpy(comm_.out(), sent(call) + first, bytes);
      const int n = static_cast<int>(bytes);
      comm_.run("MPI_Iallgather", MPI_Iallgather, comm_.out(), n, MPI_BYTE, comm_.in(), n, MPI_BYTE);
      for (std::size_t block = 0; block < ranks(); ++block) {
        std::memcpy(received(call) + block * all + first, comm_.in() + block * bytes, bytes);
      }
    });
    return {*this, done_};
  }

  ddprun::Work barrier() override {
    comm_.begin();
    comm_.run("MPI_Ibarrier", MPI_Ibarrier);
    return {*this, done_};
  }

  void abort() noexcept override { comm_.abort(); }

 private:
  static const char* sent(const Collective& call) { return static_cast<const char*>(call.send); }
  static char* received(const Collective& call) { return static_cast<char*>(call.recv); }
  std::size_t ranks() const { return static_cast<std::size_t>(size()); }

  // step(first, count) for pieces of `total` elements, of which each takes `bytes` of a buffer of the communicator. So
  // the counts of MPI, which are int, are large enough.
  template <typename Step>
  void in_pieces(std::size_t total, std::size_t bytes, Step step) {
    comm_.begin();
    const std::size_t most = comm_.piece() / bytes;
    for (std::size_t first = 0; first < total; first += most) step(first, std::min(most, total - first));
  }

  // Does the rest of a reduction that MPI has not done, and gives the caller the piece.
  void take_reduced(const Collective& call, std::size_t first, std::size_t count) {
    const std::size_t element = size_of(call.dtype);
    const int n = static_cast<int>(count);
    for (std::size_t part = 1; ordered_ && part < ranks(); ++part) {
      const char* next = comm_.in() + part * count * element;
      check(MPI_Reduce_local(next, comm_.in(), n, type_of(call.dtype), op_of(call.op)), "MPI_Reduce_local");
    }
    if (call.op == Op::avg && call.dtype == DType::float32) divide<float>(comm_.in(), count, size());
    if (call.op == Op::avg && call.dtype == DType::float64) divide<double>(comm_.in(), count, size());
    std::memcpy(received(call) + first * element, comm_.in(), count * element);
  }

  const bool ordered_;  // this plugin adds, in the order of the ranks
  Communicator comm_;
  ddprun::Request done_{{"mpi", "mpi"}}, ordered_done_{{"ordered", "mpi"}};
};

// Not declared: float16 and bfloat16, which MPI does not have; int8, int16 and uint8, because Open MPI 4.1.4 adds them
// with saturation where the CPU has AVX: 100 + 100 is 127 in int8, and must be -56.
constexpr uint32_t kTypes = ddprun::bits(DType::float32, DType::float64, DType::int32, DType::int64);
constexpr ddprun_comm_algorithm kAlgorithms[] = {ddprun::algorithm("mpi", kTypes, ddprun::kAllOps),
                                                 ddprun::algorithm("ordered", kTypes, ddprun::kAllOps)};
constexpr ddprun_option_spec kOptions[] = {
    ddprun::size_option("piece", "1MiB", "4KiB", "1GiB", "how much data MPI gets at once; equal on all ranks")};

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#if defined(OMPI_MAJOR_VERSION)
#define LIBRARY "Open MPI " TEXT(OMPI_MAJOR_VERSION) "." TEXT(OMPI_MINOR_VERSION) "." TEXT(OMPI_RELEASE_VERSION)
#elif defined(MPICH_VERSION)
#define LIBRARY "MPICH " MPICH_VERSION
#else
#define LIBRARY "MPI " TEXT(MPI_VERSION) "." TEXT(MPI_SUBVERSION)
#endif

// Without finish, mpirun takes the end of the ranks for a crash.
constexpr ddprun::CommPluginInfo kInfo = {
    .name = "mpi",
    .version = "0.1.0",
    .library = LIBRARY,
    .capabilities = DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING | DDPRUN_CAP_REDUCE_SCATTER,
    .algorithms = kAlgorithms,
    .options = kOptions,
    .finish = finish_mpi};

}  // namespace

DDPRUN_COMM_PLUGIN(Backend, kInfo);
