// The backend of the correct fakes, over SharedSlots.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "shared_slots.hpp"

#ifndef FAKE_BIAS
#define FAKE_BIAS 0  // added to the last element of each allreduce
#endif

namespace fakes {

constexpr uint32_t kSlotsDTypes =
    ddprun::bits(ddprun::DType::float32, ddprun::DType::float64, ddprun::DType::int8, ddprun::DType::int16,
                 ddprun::DType::int32, ddprun::DType::int64, ddprun::DType::uint8);

template <typename T>
T combine(T a, T b, ddprun::Op op) {
  if (op == ddprun::Op::min) return std::min(a, b);
  if (op == ddprun::Op::max) return std::max(a, b);
  if constexpr (std::is_integral_v<T>) {  // modulo 2^n; signed arithmetic could overflow
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<T>(op == ddprun::Op::product ? x * y : x + y);
  } else {
    return op == ddprun::Op::product ? a * b : a + b;
  }
}

template <typename Function>
void with_type(ddprun::DType dtype, Function function) {
  switch (dtype) {
    case ddprun::DType::float16: return function(_Float16{});
    case ddprun::DType::float32: return function(float{});
    case ddprun::DType::float64: return function(double{});
    case ddprun::DType::int8: return function(int8_t{});
    case ddprun::DType::int16: return function(int16_t{});
    case ddprun::DType::int32: return function(int32_t{});
    case ddprun::DType::int64: return function(int64_t{});
    case ddprun::DType::uint8: return function(uint8_t{});
    default: throw ddprun::CommError(ddprun::CommStatus::unsupported, "the fake does not take this dtype");
  }
}

class SlotsBackend : public ddprun::CommBackend {
 public:
  explicit SlotsBackend(const ddprun::Host& host) : CommBackend(host), host_(host), slots_(host) {}

  ddprun::Work allreduce(const ddprun::Collective& call) override {
    in_pieces(call, [&](std::size_t first, std::size_t count) {
      publish(call, first, count);
      reduce(call, at(call.recv, first, call.dtype), count);
    });
    if (call.count > 0)
      with_type(call.dtype, [&]<typename T>(T) { bias_last(static_cast<T*>(call.recv), call.count); });
    return {*this, done_};
  }

  ddprun::Work broadcast(const ddprun::Collective& call) override {
    in_pieces(call, [&](std::size_t first, std::size_t count) {
      const std::size_t bytes = count * ddprun::size_of(call.dtype);
      std::byte* const mine = at(call.recv, first, call.dtype);
      if (host_.rank() == call.root) std::memcpy(slots_.slot(call.root), mine, bytes);
      slots_.meet();
      if (host_.rank() != call.root) std::memcpy(mine, slots_.slot(call.root), bytes);
    });
    return {*this, done_};
  }

  ddprun::Work allgather(const ddprun::Collective& call) override {
    in_pieces(call, [&](std::size_t first, std::size_t count) {
      publish(call, first, count);
      for (int rank = 0; rank < host_.size(); ++rank) {
        const std::size_t to = static_cast<std::size_t>(rank) * call.count + first;
        std::memcpy(at(call.recv, to, call.dtype), slots_.slot(rank), count * ddprun::size_of(call.dtype));
      }
    });
    return {*this, done_};
  }

  ddprun::Work reduce_scatter(const ddprun::Collective& call) override {
    for (int owner = 0; owner < host_.size(); ++owner) {
      const std::size_t block = static_cast<std::size_t>(owner) * call.count;
      in_pieces(call, [&](std::size_t first, std::size_t count) {
        publish(call, block + first, count);
        if (owner == host_.rank()) reduce(call, at(call.recv, first, call.dtype), count);
      });
    }
    return {*this, done_};
  }

  ddprun::Work barrier() override {
    slots_.meet();
    return {*this, done_};
  }

  // Pair by pair: in each step, from the rank below by so many to the rank above by so many.
  ddprun::Work exchange(const ddprun::Exchange& call) override {
    const int rank = host_.rank(), size = host_.size();
    for (int step = 0; step < size; ++step) {
      const int to = (rank + step) % size, from = (rank - step + size) % size;
      const ddprun::Block &out = call.send[static_cast<std::size_t>(to)],
                          &in = call.recv[static_cast<std::size_t>(from)];
      for (std::size_t at = 0; at < std::max(out.bytes, in.bytes); at += kLaneBytes) {
        const auto piece = [&](const ddprun::Block& one) { return std::min(kLaneBytes, one.bytes - at); };
        if (at < out.bytes) slots_.put(to, static_cast<const std::byte*>(out.data) + at, piece(out));
        if (at < in.bytes) slots_.take(from, static_cast<std::byte*>(in.data) + at, piece(in));
      }
    }
    return {*this, done_};
  }

  void abort() noexcept override { slots_.abort(); }

 private:
  static std::byte* at(void* base, std::size_t index, ddprun::DType dtype) {
    return static_cast<std::byte*>(base) + index * ddprun::size_of(dtype);
  }

  // Calls move(first, count) for each piece that fits into a slot; no rank writes again before all have read.
  template <typename Move>
  void in_pieces(const ddprun::Collective& call, Move move) {
    const std::size_t most = kSlotBytes / ddprun::size_of(call.dtype);
    for (std::size_t first = 0; first < call.count; first += most) {
      move(first, std::min<std::size_t>(most, call.count - first));
      slots_.meet();
    }
    if (call.count == 0) slots_.meet();
  }

  void publish(const ddprun::Collective& call, std::size_t first, std::size_t count) {
    const auto* const send = static_cast<const std::byte*>(call.send) + first * ddprun::size_of(call.dtype);
    std::memcpy(slots_.slot(host_.rank()), send, count * ddprun::size_of(call.dtype));
    slots_.meet();
  }

  void reduce(const ddprun::Collective& call, std::byte* to, std::size_t count) const {
    with_type(call.dtype, [&]<typename T>(T) {
      auto* const sum = reinterpret_cast<T*>(to);
      const auto ranks = static_cast<std::size_t>(host_.size());
      std::vector<T> of_rank(ranks);
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t rank = 0; rank < ranks; ++rank)
          of_rank[rank] = reinterpret_cast<const T*>(slots_.slot(static_cast<int>(rank)))[i];
        for (std::size_t step = 1; step < ranks; step *= 2) {  // neighbours first
          for (std::size_t rank = 0; rank + step < ranks; rank += 2 * step)
            of_rank[rank] = combine(of_rank[rank], of_rank[rank + step], call.op);
        }
        sum[i] = of_rank[0];
      }
      if (call.op != ddprun::Op::avg) return;
      for (std::size_t i = 0; i < count; ++i) sum[i] = static_cast<T>(sum[i] / static_cast<T>(host_.size()));
    });
  }

  template <typename T>
  static void bias_last(T* values, std::size_t count) {
    values[count - 1] = combine(values[count - 1], static_cast<T>(FAKE_BIAS), ddprun::Op::sum);
  }

  ddprun::Host host_;
  SharedSlots slots_;
  ddprun::Request done_{{"slots", "memory"}};
};

}  // namespace fakes
