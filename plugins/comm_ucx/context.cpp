#include "context.hpp"

#include <poll.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>

namespace ddprun::ucx_backend {
namespace {

std::string from_environment(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

bool names_any(std::string_view list, std::initializer_list<std::string_view> names) {
  const auto listed = parse_list(list);
  return std::ranges::find_first_of(listed, names) != listed.end();
}

void set(ucp_config_t* config, const char* name, const std::string& value) {
  check(ucp_config_modify(config, name, value.c_str()), CommStatus::invalid,
        "UCX does not accept UCX_" + std::string(name) + " = \"" + value + "\"");
}

// Variables that the user has set stay.
void set_defaults(ucp_config_t* config) {
  constexpr std::pair<const char*, const char*> kDefaults[] = {
      // By default UCX's TCP moves 8 KiB at a time, which costs three times as much from 64 KiB on (bench/allreduce.py
      // --tcp). A segment of a vector (host_space.hpp) fits, with the headers of UCX.
      {"TCP_TX_SEG_SIZE", "260k"},
      {"TCP_RX_SEG_SIZE", "260k"},
      // With a connect() that blocks, UCX 1.22 ends the process with an assertion (stubs.c) if the peer has died just
      // then. It would also wait for a host that does not answer.
      {"TCP_CONN_NB", "y"},
      // host::enable_keepalive()
      {"TCP_KEEPIDLE", "1s"},
      {"TCP_KEEPINTVL", "1s"},
      {"TCP_KEEPCNT", "10"},
  };
  for (const auto& [name, value] : kDefaults) {
    if (std::getenv(("UCX_" + std::string(name)).c_str()) == nullptr) set(config, name, value);
  }
}

}  // namespace

Transports Transports::of(const Host& host, int ranks_here) {
  const std::string tls = host.options().text("tls", from_environment("UCX_TLS", ""));
  const std::string devices = host.options().text("devices", from_environment("UCX_NET_DEVICES", "all"));
  const std::string here = host.device() < 0 ? "self,sysv,cma" : "self,sysv,cma,cuda";
  // What was measured: 4 MiB for each rank, and 50 MiB if large messages cannot use cma.
  const auto needed = static_cast<unsigned long>(ranks_here) * (names_any(tls, {"all", "sm", "shm", "cma"}) ? 8 : 64);
  struct statvfs shm = {};
  if (names_any(tls, {"all", "sm", "shm", "mm", "posix"}) && statvfs("/dev/shm", &shm) == 0 &&
      shm.f_blocks * shm.f_frsize >> 20 < needed) {
    throw CommError(CommStatus::no_memory, "tls = \"" + tls + "\" needs a /dev/shm of " + std::to_string(needed) +
                                               " MiB: docker run --shm-size=" + std::to_string(needed) +
                                               "m; or set comm.options.tls (UCX_TLS) to \"" + here + "\"");
  }
  return {!tls.empty() ? tls : ranks_here == host.size() ? here : "^posix", devices, !tls.empty()};
}

bool Transports::share_memory() const {
  if (tls.starts_with('^')) return !names_any(std::string_view(tls).substr(1), {"sm", "shm", "mm"});
  return names_any(tls, {"all", "sm", "shm", "mm", "posix", "sysv", "xpmem"});
}

Context::Context(const Transports& transports, int ranks, int ranks_here, bool takes_cuda) {
  take_warnings();
  ucp_config_t* read = nullptr;
  check(ucp_config_read(nullptr, nullptr, &read), CommStatus::invalid, "UCX cannot read its settings (UCX_...)");
  const std::unique_ptr<ucp_config_t, decltype(&ucp_config_release)> config(read, ucp_config_release);
  set(config.get(), "TLS", transports.tls);
  set(config.get(), "NET_DEVICES", transports.devices);
  set_defaults(config.get());

  ucp_params_t wanted = {};
  wanted.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_ESTIMATED_NUM_PPN;
  wanted.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  wanted.estimated_num_eps = static_cast<std::size_t>(ranks);
  wanted.estimated_num_ppn = static_cast<std::size_t>(ranks_here);
  const std::string asked = "comm.options: tls = \"" + transports.tls + "\", devices = \"" + transports.devices + "\"";
  ucp_context_h made = nullptr;
  check(ucp_init(&wanted, config.get(), &made), CommStatus::invalid, asked);
  context_.reset(made);
  // If UCX lacks a transport, it only warns.
  const std::string warnings = take_warnings();
  if (transports.asked_for && !warnings.empty()) throw CommError(CommStatus::invalid, asked + ": " + warnings);
  if (takes_cuda) require_cuda(transports, warnings);
}

// Without this check UCX would treat GPU memory as host memory, and crash.
void Context::require_cuda(const Transports& transports, const std::string& warnings) const {
  ucp_context_attr_t answer = {};
  answer.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  check(ucp_context_query(get(), &answer), CommStatus::internal, "UCX does not report which memory it supports");
  if ((answer.memory_types >> UCS_MEMORY_TYPE_CUDA & 1) != 0) return;
  throw CommError(CommStatus::unsupported,
                  "UCX takes no CUDA memory with tls = \"" + transports.tls +
                      "\": it needs the transports \"cuda\" in comm.options.tls (UCX_TLS), a UCX that was built with "
                      "CUDA, and the driver; comm.stage_through_host = true works without it" +
                      (warnings.empty() ? "" : " (" + warnings + ")"));
}

Worker::Worker(const Context& context) {
  ucp_worker_params_t wanted = {};
  wanted.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  wanted.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  check(ucp_worker_create(context.get(), &wanted, &worker_), CommStatus::internal, "UCX cannot make a worker");
  if (const auto status = ucp_worker_get_efd(worker_, &events_); status != UCS_OK) {
    ucp_worker_destroy(worker_);
    check(status, CommStatus::internal, "UCX cannot wake a worker");
  }
}

void Worker::sleep(std::chrono::nanoseconds longest) const noexcept {
  if (ucp_worker_arm(worker_) != UCS_OK) return;  // something has arrived meanwhile
  const timespec time = {0, static_cast<long>(longest.count())};
  pollfd event = {events_, POLLIN, 0};
  ppoll(&event, 1, &time, nullptr);
}

std::string Worker::address() const {
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  check(ucp_worker_get_address(worker_, &address, &length), CommStatus::internal, "UCX does not report its address");
  const std::string bytes(reinterpret_cast<const char*>(address), length);
  ucp_worker_release_address(worker_, address);
  return bytes;
}

}  // namespace ddprun::ucx_backend
