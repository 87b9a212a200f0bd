#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <type_traits>
#include <utility>

#include "ddprun/plugin/words.hpp"
#include "tools/conformance/guarded.hpp"
#include "tools/conformance/suite.hpp"

namespace ddprun::conformance::spy {
namespace {

const ddprun_comm_plugin* watched = nullptr;
thread_local std::vector<std::string> faults;
thread_local ddprun_comm* joined = nullptr;
thread_local std::function<void(ddprun_collective&)> change;
thread_local std::deque<ddprun_collective> passed;
thread_local bool structs_at_ends = false;

// The host's side of a communicator. Never destroyed, because a plugin may call it too late.
struct Host {
  void* context;
  decltype(ddprun_comm_host::log) log;
  decltype(ddprun_comm_host::allgather) allgather;
  std::atomic<bool> has_gone{false};
};

// Of the whole process, because any thread of a plugin may log.
struct Shared {
  std::mutex mutex;
  std::vector<std::string> faults;
  std::vector<Host*> hosts;  // all that were ever made; so that no search for leaks takes them for lost
  std::map<ddprun_comm*, Host*> host_of;
  std::map<ddprun_comm*, std::map<const char*, std::string>> texts;  // what wait has given, by its address
};

Shared& shared() {
  static auto& one = *new Shared;
  return one;
}

void add_shared_fault(const std::string& text) {
  const std::lock_guard lock(shared().mutex);
  shared().faults.push_back(text);
}

void check_text(const std::string& where, const char* text, std::size_t most) {
  const auto add = [&](const char* what) { faults.push_back(where + what); };
  if (text == nullptr) return add(" is null after a failure; it must be a line that says why");
  const std::size_t length = strnlen(text, most);
  if (length == 0) return add(" is empty after a failure; it must be a line that says why");
  if (length == most) return add(" has no final 0");
  if (std::strpbrk(text, "\n\r") != nullptr) return add(" has several lines after a failure; it must be one line");
  if (printable(text) != text) add(" has a control character, or is not UTF-8");
}

void log(void* context, int32_t level, const char* message) {
  const auto& host = *static_cast<const Host*>(context);
  const std::string line = printable(message);
  if (host.has_gone) return add_shared_fault("logged after destroy: " + line);
  if (line != message) add_shared_fault("a line of the log has a control character, or is not UTF-8: " + line);
  host.log(host.context, level, line.c_str());
}

ddprun_status allgather(void* context, const void* send, uint64_t bytes, void* recv) {
  const auto& host = *static_cast<const Host*>(context);
  return host.allgather(host.context, send, bytes, recv);
}

// Calls the plugin with `given`, or with a copy that nothing follows in memory.
template <class Struct, class Call>
ddprun_status with_struct(Struct* given, Call call) {
  if (!structs_at_ends || given == nullptr) return call(given);
  const PageEnd memory(sizeof *given);
  auto* const copy = new (memory.data()) std::remove_const_t<Struct>(*given);
  const ddprun_status status = call(copy);
  if constexpr (!std::is_const_v<Struct>) *given = *copy;
  return status;
}

ddprun_status create(const ddprun_comm_host* given, ddprun_comm** out) {
  for (const char* name : {watched->name, watched->version, watched->library}) {
    if (printable(name) != name) faults.push_back("a name of the plugin has a control character, or is not UTF-8");
  }
  auto* const host = new Host{given->context, given->log, given->allgather};
  ddprun_comm_host own = *given;
  own.context = host;
  own.log = log;
  own.allgather = allgather;
  {
    const std::lock_guard lock(shared().mutex);
    shared().hosts.push_back(host);
  }
  const ddprun_status status =
      with_struct(&std::as_const(own), [&](const ddprun_comm_host* one) { return watched->create(one, out); });
  if (status != DDPRUN_OK) {
    host->has_gone = true;
    check_text("the error of create", given->error, given->error_size);
    return status;
  }
  joined = *out;
  const std::lock_guard lock(shared().mutex);
  shared().host_of[*out] = host;
  return status;
}

void destroy(ddprun_comm* comm) {
  Host* host = nullptr;
  {
    const std::lock_guard lock(shared().mutex);
    for (const auto& [text, copy] : shared().texts[comm]) {
      if (text != copy) shared().faults.push_back("the text \"" + copy + "\" of wait did not live until destroy");
    }
    shared().texts.erase(comm);
    host = std::exchange(shared().host_of[comm], nullptr);
  }
  watched->destroy(comm);
  host->has_gone = true;
}

const char* last_error(ddprun_comm* comm) {
  constexpr std::size_t kLongest = 1 << 20;
  const char* const text = watched->last_error(comm);
  check_text("last_error", text, kLongest);
  return text;
}

ddprun_status wait(ddprun_comm* comm, ddprun_request* request, uint32_t timeout_ms, ddprun_comm_execution* execution) {
  const ddprun_status status =
      with_struct(execution, [&](ddprun_comm_execution* one) { return watched->wait(comm, request, timeout_ms, one); });
  if (status != DDPRUN_OK || execution == nullptr) return status;
  for (const auto& [what, text] : {std::pair("algorithm", execution->algorithm), {"transport", execution->transport}}) {
    if (text == nullptr || printable(text) != text) {
      faults.push_back(std::string("the ") + what + " of wait is null, or has a control character");
    } else {
      const std::lock_guard lock(shared().mutex);
      shared().texts[comm].emplace(text, text);
    }
  }
  return status;
}

template <ddprun_collective_fn ddprun_comm_plugin::*function>
ddprun_status collective(ddprun_comm* comm, const ddprun_collective* call, ddprun_request** request) {
  if (!change) {
    return with_struct(call, [&](const ddprun_collective* one) { return (watched->*function)(comm, one, request); });
  }
  ddprun_collective& copy = passed.emplace_back(*call);
  const ddprun_status status = (watched->*function)(comm, &copy, request);
  change(copy);
  return status;
}

ddprun_status exchange(ddprun_comm* comm, const ddprun_exchange* call, ddprun_request** request) {
  return with_struct(call, [&](const ddprun_exchange* one) { return watched->exchange(comm, one, request); });
}

}  // namespace

const ddprun_comm_plugin& watch(const ddprun_comm_plugin& plugin) {
  static ddprun_comm_plugin table;
  watched = &plugin;
  table = plugin;
  table.create = create;
  table.destroy = destroy;
  table.last_error = last_error;
  table.wait = wait;
  table.allreduce = collective<&ddprun_comm_plugin::allreduce>;
  table.broadcast = collective<&ddprun_comm_plugin::broadcast>;
  table.allgather = collective<&ddprun_comm_plugin::allgather>;
  table.barrier = collective<&ddprun_comm_plugin::barrier>;
  if ((plugin.capabilities & DDPRUN_CAP_EXCHANGE) != 0) table.exchange = exchange;
  if (plugin.reduce_scatter != nullptr) table.reduce_scatter = collective<&ddprun_comm_plugin::reduce_scatter>;
  return table;
}

std::vector<std::string> take_faults() {
  const std::lock_guard lock(shared().mutex);
  faults.insert(faults.end(), shared().faults.begin(), shared().faults.end());
  shared().faults.clear();
  return std::exchange(faults, {});
}

ddprun_comm* last_joined() {
  return joined;
}

void change_after_call(std::function<void(ddprun_collective&)> to_call) {
  change = std::move(to_call);
  if (!change) passed.clear();
}

void put_structs_at_ends(bool on) {
  structs_at_ends = on;
}

}  // namespace ddprun::conformance::spy
