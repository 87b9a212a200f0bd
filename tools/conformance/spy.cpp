#include "tools/conformance/suite.hpp"

#include <cstring>
#include <deque>
#include <utility>

namespace ddprun::conformance::spy {
namespace {

const ddprun_comm_plugin* watched = nullptr;
thread_local std::vector<std::string> faults;
thread_local ddprun_comm* joined = nullptr;
thread_local std::function<void(ddprun_collective&)> change;
thread_local std::deque<ddprun_collective> passed;

void check_text(const char* where, const char* text, std::size_t most) {
  const auto add = [&](const char* what) { faults.push_back(std::string(where) + what); };
  if (text == nullptr) return add(" is null after a failure; it must be a line that says why");
  const std::size_t length = strnlen(text, most);
  if (length == 0) return add(" is empty after a failure; it must be a line that says why");
  if (length == most) return add(" has no final 0");
  if (std::strpbrk(text, "\n\r") != nullptr) add(" has several lines after a failure; it must be one line");
}

ddprun_status create(const ddprun_comm_host* host, ddprun_comm** out) {
  const ddprun_status status = watched->create(host, out);
  if (status == DDPRUN_OK) {
    joined = *out;
  } else {
    check_text("the error of create", host->error, host->error_size);
  }
  return status;
}

const char* last_error(ddprun_comm* comm) {
  constexpr std::size_t kLongest = 1 << 20;
  const char* const text = watched->last_error(comm);
  check_text("last_error", text, kLongest);
  return text;
}

template <ddprun_collective_fn ddprun_comm_plugin::*function>
ddprun_status collective(ddprun_comm* comm, const ddprun_collective* call, ddprun_request** request) {
  if (!change) return (watched->*function)(comm, call, request);
  ddprun_collective& copy = passed.emplace_back(*call);
  const ddprun_status status = (watched->*function)(comm, &copy, request);
  change(copy);
  return status;
}

}  // namespace

const ddprun_comm_plugin& watch(const ddprun_comm_plugin& plugin) {
  static ddprun_comm_plugin table;
  watched = &plugin;
  table = plugin;
  table.create = create;
  table.last_error = last_error;
  table.allreduce = collective<&ddprun_comm_plugin::allreduce>;
  table.broadcast = collective<&ddprun_comm_plugin::broadcast>;
  table.allgather = collective<&ddprun_comm_plugin::allgather>;
  table.barrier = collective<&ddprun_comm_plugin::barrier>;
  if (plugin.reduce_scatter != nullptr) table.reduce_scatter = collective<&ddprun_comm_plugin::reduce_scatter>;
  return table;
}

std::vector<std::string> take_faults() {
  return std::exchange(faults, {});
}

ddprun_comm* last_joined() {
  return joined;
}

void change_after_call(std::function<void(ddprun_collective&)> to_call) {
  change = std::move(to_call);
  if (!change) passed.clear();
}

}  // namespace ddprun::conformance::spy
