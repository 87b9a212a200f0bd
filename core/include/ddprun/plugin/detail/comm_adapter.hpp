// The functions of the C table, for a backend that is a C++ class. Included by comm_plugin.hpp only.
#pragma once

#include "ddprun/plugin/comm_plugin.hpp"
#include "ddprun/plugin/detail/comm_convert.hpp"

namespace ddprun {
namespace detail {

bool is_raised(const int32_t* abort_flag) noexcept;

using StartCollective = Work (CommBackend::*)(const Collective&);
ddprun_status start_collective(StartCollective start, ddprun_comm* comm, const ddprun_collective* collective,
                               ddprun_request** out);
ddprun_status create_backend(MakeCommBackend* make, const CommPluginInfo& info, const ddprun_comm_host* host,
                             ddprun_comm** out);
ddprun_status barrier(ddprun_comm* comm, const ddprun_collective*, ddprun_request** out);
ddprun_status exchange(ddprun_comm* comm, const ddprun_exchange* given, ddprun_request** out);
ddprun_status test(ddprun_comm* comm, ddprun_request* request, int32_t* done);
ddprun_status wait(ddprun_comm* comm, ddprun_request* request, uint32_t timeout_ms, ddprun_comm_execution* execution);
ddprun_status async_error(ddprun_comm* comm);
void abort(ddprun_comm* comm);
const char* last_error(ddprun_comm* comm);
ddprun_status alloc(ddprun_comm* comm, uint64_t bytes, void** out);
void free(ddprun_comm* comm, void* memory);
void destroy(ddprun_comm* comm);

template <StartCollective start>
ddprun_status collective(ddprun_comm* comm, const ddprun_collective* collective, ddprun_request** out) {
  return start_collective(start, comm, collective, out);
}

template <MakeCommBackend make, const CommPluginInfo& info>
ddprun_status create(const ddprun_comm_host* host, ddprun_comm** out) {
  return create_backend(make, info, host, out);
}

}  // namespace detail

template <MakeCommBackend make, const CommPluginInfo& info>
constexpr ddprun_comm_plugin comm_plugin() {
  const auto has = [](uint64_t bit) { return (info.capabilities & bit) != 0; };
  ddprun_comm_plugin table = {};
  table.struct_size = sizeof table;
  table.abi = DDPRUN_COMM_ABI;
  table.name = info.name;
  table.version = info.version;
  table.library = info.library;
  table.capabilities = info.capabilities;
  table.algorithms = info.algorithms.data();
  table.algorithm_count = static_cast<uint32_t>(info.algorithms.size());
  table.options = info.options.data();
  table.option_count = static_cast<uint32_t>(info.options.size());
  table.finish = info.finish;
  table.create = detail::create<make, info>;
  table.destroy = detail::destroy;
  table.allreduce = detail::collective<&CommBackend::allreduce>;
  table.broadcast = detail::collective<&CommBackend::broadcast>;
  table.allgather = detail::collective<&CommBackend::allgather>;
  table.barrier = detail::barrier;
  table.wait = detail::wait;
  table.abort = detail::abort;
  table.last_error = detail::last_error;
  if (has(DDPRUN_CAP_REDUCE_SCATTER)) table.reduce_scatter = detail::collective<&CommBackend::reduce_scatter>;
  if (has(DDPRUN_CAP_EXCHANGE)) table.exchange = detail::exchange;
  if (!has(DDPRUN_CAP_BLOCKING)) table.test = detail::test;
  if (has(DDPRUN_CAP_STREAM_ORDERED)) table.async_error = detail::async_error;
  if (has(DDPRUN_CAP_ALLOC)) {
    table.alloc = detail::alloc;
    table.free = detail::free;
  }
  return table;
}

}  // namespace ddprun
