// A small backend that really works, between threads and between processes. Built as "good", as "off_by_one", whose
// allreduce leaves the last element one too large, which a conformance test has to notice, and as both of them for
// CUDA memory, which is the host's where the CUDA runtime is the tests' own.
#include <algorithm>
#include <cstring>

#include "ddprun/plugin/comm_plugin.hpp"
#include "shared_slots.hpp"

namespace fakes {
namespace {

constexpr uint32_t kDTypes =
    ddprun::bits(DDPRUN_FLOAT32, DDPRUN_FLOAT64, DDPRUN_INT8, DDPRUN_INT16, DDPRUN_INT32, DDPRUN_INT64, DDPRUN_UINT8);

template <typename T>
T combine(T a, T b, int32_t op) {
  if (op == DDPRUN_MIN) return std::min(a, b);
  if (op == DDPRUN_MAX) return std::max(a, b);
  if constexpr (std::is_integral_v<T>) {  // modulo 2^n, which signed arithmetic would not be
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<T>(op == DDPRUN_PRODUCT ? x * y : x + y);
  } else {
    return op == DDPRUN_PRODUCT ? a * b : a + b;
  }
}

template <typename Function>
void with_type(int32_t dtype, Function function) {
  switch (dtype) {
    case DDPRUN_FLOAT32: return function(float{});
    case DDPRUN_FLOAT64: return function(double{});
    case DDPRUN_INT8: return function(int8_t{});
    case DDPRUN_INT16: return function(int16_t{});
    case DDPRUN_INT32: return function(int32_t{});
    case DDPRUN_INT64: return function(int64_t{});
    case DDPRUN_UINT8: return function(uint8_t{});
    default: throw ddprun::Failure(DDPRUN_UNSUPPORTED, "the fake does not take this dtype");
  }
}

class SlotsBackend : public ddprun::Communicator {
 public:
  explicit SlotsBackend(const ddprun::Host& host) : host_(checked(host)), slots_(host) {}

  ddprun::Request& allreduce(const ddprun_collective& call) override {
    in_pieces(call, [&](std::size_t first, std::size_t count) {
      publish(call, first, count);
      reduce(call, at(call.recv, first, call.dtype), count);
    });
    if (call.count > 0)
      with_type(call.dtype, [&]<typename T>(T) { bias_last(static_cast<T*>(call.recv), call.count); });
    return served_;
  }

  ddprun::Request& broadcast(const ddprun_collective& call) override {
    in_pieces(call, [&](std::size_t first, std::size_t count) {
      const std::size_t bytes = count * ddprun::size_of(call.dtype);
      std::byte* const mine = at(call.recv, first, call.dtype);
      if (host_.rank() == call.root) std::memcpy(slots_.slot(call.root), mine, bytes);
      slots_.meet();
      if (host_.rank() != call.root) std::memcpy(mine, slots_.slot(call.root), bytes);
    });
    return served_;
  }

  ddprun::Request& allgather(const ddprun_collective& call) override {
    in_pieces(call, [&](std::size_t first, std::size_t count) {
      publish(call, first, count);
      for (int rank = 0; rank < host_.size(); ++rank) {
        const std::size_t to = static_cast<std::size_t>(rank) * call.count + first;
        std::memcpy(at(call.recv, to, call.dtype), slots_.slot(rank), count * ddprun::size_of(call.dtype));
      }
    });
    return served_;
  }

  ddprun::Request& reduce_scatter(const ddprun_collective& call) override {
    for (int owner = 0; owner < host_.size(); ++owner) {
      const std::size_t block = static_cast<std::size_t>(owner) * call.count;
      in_pieces(call, [&](std::size_t first, std::size_t count) {
        publish(call, block + first, count);
        if (owner == host_.rank()) reduce(call, at(call.recv, first, call.dtype), count);
      });
    }
    return served_;
  }

  ddprun::Request& barrier() override {
    slots_.meet();
    return served_;
  }

  void abort() noexcept override { slots_.abort(); }

 private:
  static const ddprun::Host& checked(const ddprun::Host& host) {
    host.refuse_options_beyond({});
    return host;
  }

  static std::byte* at(void* base, std::size_t index, int32_t dtype) {
    return static_cast<std::byte*>(base) + index * ddprun::size_of(dtype);
  }

  // Calls move(first, count) for each piece that fits into a slot; nobody writes again before all have read.
  template <typename Move>
  void in_pieces(const ddprun_collective& call, Move move) {
    const std::size_t most = kSlotBytes / ddprun::size_of(call.dtype);
    for (std::size_t first = 0; first < call.count; first += most) {
      move(first, std::min<std::size_t>(most, call.count - first));
      slots_.meet();
    }
    if (call.count == 0) slots_.meet();
  }

  void publish(const ddprun_collective& call, std::size_t first, std::size_t count) {
    const auto* const send = static_cast<const std::byte*>(call.send) + first * ddprun::size_of(call.dtype);
    std::memcpy(slots_.slot(host_.rank()), send, count * ddprun::size_of(call.dtype));
    slots_.meet();
  }

  void reduce(const ddprun_collective& call, std::byte* to, std::size_t count) const {
    with_type(call.dtype, [&]<typename T>(T) {
      auto* const sum = reinterpret_cast<T*>(to);
      std::memcpy(sum, slots_.slot(0), count * sizeof(T));
      for (int rank = 1; rank < host_.size(); ++rank) {
        const auto* const other = reinterpret_cast<const T*>(slots_.slot(rank));
        for (std::size_t i = 0; i < count; ++i) sum[i] = combine(sum[i], other[i], call.op);
      }
      if (call.op != DDPRUN_AVG) return;
      for (std::size_t i = 0; i < count; ++i) sum[i] = static_cast<T>(sum[i] / static_cast<T>(host_.size()));
    });
  }

  template <typename T>
  static void bias_last(T* values, std::size_t count) {
    values[count - 1] = combine(values[count - 1], static_cast<T>(FAKE_BIAS), DDPRUN_SUM);
  }

  ddprun::Host host_;
  SharedSlots slots_;
  ddprun::Request served_{"slots", "memory"};
};

constexpr ddprun_comm_algorithm kAlgorithms[] = {ddprun::algorithm("slots", kDTypes, ddprun::kAllOps)};
constexpr ddprun::CommPluginInfo kInfo = {FAKE_NAME, "1.2.3", "slots 0.1",
                                          DDPRUN_CAP_BLOCKING | FAKE_MEMORY, kAlgorithms};

}  // namespace
}  // namespace fakes

DDPRUN_COMM_PLUGIN(fakes::SlotsBackend, fakes::kInfo);
