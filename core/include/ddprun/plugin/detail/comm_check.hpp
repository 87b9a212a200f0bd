// The checks that no backend has to write: a host and a collective against the contract and against what the plugin
// declares. Included by comm_plugin.hpp only.
#pragma once

#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "ddprun/plugin/detail/comm_host.hpp"

namespace ddprun {
namespace detail {

enum class Collective { allreduce, broadcast, allgather, reduce_scatter, barrier };

inline const char* name_of(Collective kind) {
  constexpr const char* names[] = {"allreduce", "broadcast", "allgather", "reduce_scatter", "barrier"};
  return names[static_cast<int>(kind)];
}

// What one communicator takes, from its plugin's declaration and the algorithm that was asked for.
struct Declaration {
  uint64_t capabilities;
  std::span<const ddprun_comm_algorithm> all;       // reduce_scatter: what any algorithm takes
  std::span<const ddprun_comm_algorithm> selected;  // allreduce: the chosen one, or all under "auto"
};

inline Declaration declaration(const CommPluginInfo& info, std::string_view chosen) {
  if (chosen == "auto") return {info.capabilities, info.algorithms, info.algorithms};
  for (const auto& entry : info.algorithms) {
    if (chosen == entry.name) return {info.capabilities, info.algorithms, {&entry, 1}};
  }
  std::vector<std::string_view> known = {"auto"};
  for (const auto& entry : info.algorithms) known.push_back(entry.name);
  throw Failure(DDPRUN_UNSUPPORTED,
                "no algorithm \"" + std::string(chosen) + "\": expected " + nearest_first(chosen, std::move(known)));
}

inline void require(bool holds, ddprun_status status, const char* where, const char* what) {
  if (!holds) throw Failure(status, std::string(where) + ": " + what);
}

inline bool any_takes(std::span<const ddprun_comm_algorithm> algorithms, int32_t memory) {
  for (const auto& entry : algorithms) {
    if (takes_memory(entry, memory)) return true;
  }
  return false;
}

inline void check(const CommPluginInfo& info, const ddprun_comm_host& host) {
  const auto refuse_unless = [](bool holds, const char* what) { require(holds, DDPRUN_INVALID, "create", what); };
  refuse_unless(host.size >= 1 && host.rank >= 0 && host.rank < host.size, "rank is not within 0 .. size - 1");
  refuse_unless(host.deadline_ms > 0, "deadline_ms is 0");
  refuse_unless(host.algorithm != nullptr, "algorithm is null");
  refuse_unless(host.allgather != nullptr, "allgather is null");
  refuse_unless(host.options != nullptr || host.option_count == 0, "options is null");
  const uint64_t memory = host.device < 0 ? DDPRUN_CAP_HOST : DDPRUN_CAP_CUDA;
  require((info.capabilities & memory) != 0, DDPRUN_UNSUPPORTED, "create",
          host.device < 0 ? "this backend takes CUDA memory only" : "this backend takes host memory only");
  require(any_takes(declaration(info, host.algorithm).selected, host.device < 0 ? DDPRUN_HOST : DDPRUN_CUDA),
          DDPRUN_UNSUPPORTED, "create",
          host.device < 0 ? "this algorithm takes CUDA memory only" : "this algorithm takes host memory only");
}

// Half-open ranges of addresses.
inline bool overlap(const void* a, uint64_t a_bytes, const void* b, uint64_t b_bytes) {
  const auto a_first = reinterpret_cast<uintptr_t>(a), b_first = reinterpret_cast<uintptr_t>(b);
  return a_first < b_first + b_bytes && b_first < a_first + a_bytes;
}

inline void check_buffers(const Host& host, Collective kind, const ddprun_collective& call) {
  const char* where = name_of(kind);
  const auto ranks = static_cast<uint64_t>(host.size());
  const uint64_t largest = (uint64_t{1} << 63) / (size_of(call.dtype) * ranks);
  require(call.count < largest, DDPRUN_INVALID, where, "count is too large");
  if (call.count == 0) return;
  require(call.recv != nullptr, DDPRUN_INVALID, where, "recv is null");
  if (kind == Collective::broadcast) return;
  require(call.send != nullptr, DDPRUN_INVALID, where, "send is null");

  const uint64_t block = call.count * size_of(call.dtype);
  const uint64_t send_bytes = kind == Collective::reduce_scatter ? block * ranks : block;
  const uint64_t recv_bytes = kind == Collective::allgather ? block * ranks : block;
  const uint64_t shift = kind == Collective::allreduce ? 0 : block * static_cast<uint64_t>(host.rank());
  const auto send = static_cast<const char*>(call.send), recv = static_cast<const char*>(call.recv);
  const bool in_place = kind == Collective::reduce_scatter ? recv == send + shift : send == recv + shift;
  require(in_place || !overlap(send, send_bytes, recv, recv_bytes), DDPRUN_INVALID, where,
          "send and recv overlap, and not exactly in place");
}

inline void check_reduction(const Declaration& declared, Collective kind, const ddprun_collective& call) {
  const char* where = name_of(kind);
  require(call.op >= 0 && call.op < DDPRUN_OP_COUNT, DDPRUN_INVALID, where, "no such op");
  require(call.op != DDPRUN_AVG || is_floating(call.dtype), DDPRUN_UNSUPPORTED, where,
          "avg is for floating types only; take sum");
  bool taken = false;
  for (const auto& entry : kind == Collective::allreduce ? declared.selected : declared.all) {
    taken = taken || ((entry.dtypes & bits(call.dtype)) != 0 && (entry.ops & bits(call.op)) != 0 &&
                      takes_memory(entry, call.memory));
  }
  require(taken, DDPRUN_UNSUPPORTED, where, "the algorithm does not take this dtype and op in such memory");
}

// Broadcast and allgather only move bytes: they take every dtype, declared for reductions or not.
inline void check(const Declaration& declared, const Host& host, Collective kind, const ddprun_collective* call) {
  const char* where = name_of(kind);
  require(call != nullptr, DDPRUN_INVALID, where, "the collective is null");
  require(call->struct_size >= sizeof(ddprun_collective), DDPRUN_INVALID, where, "struct_size is too small");
  if (kind == Collective::barrier) return;
  require(size_of(call->dtype) != 0, DDPRUN_INVALID, where, "no such dtype");
  require(call->memory == DDPRUN_HOST || call->memory == DDPRUN_CUDA, DDPRUN_INVALID, where, "no such memory");
  const uint64_t memory = call->memory == DDPRUN_HOST ? DDPRUN_CAP_HOST : DDPRUN_CAP_CUDA;
  require((declared.capabilities & memory) != 0, DDPRUN_UNSUPPORTED, where, "this backend does not take such memory");
  if (kind == Collective::broadcast) {
    require(call->root >= 0 && call->root < host.size(), DDPRUN_INVALID, where, "root is no rank");
  }
  if (kind == Collective::allreduce || kind == Collective::reduce_scatter) check_reduction(declared, kind, *call);
  check_buffers(host, kind, *call);
}

}  // namespace detail
}  // namespace ddprun
