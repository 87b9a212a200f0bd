#include "settings.hpp"

#include <cstdlib>
#include <map>
#include <mutex>

namespace ddprun::nccl_backend {
namespace {

struct Variable {
  const char* option;
  const char* name;
  bool is_switch;  // true or false, which NCCL expects as 1 or 0
};

constexpr Variable kVariables[] = {
    {"debug", "NCCL_DEBUG", false},
    {"debug_subsys", "NCCL_DEBUG_SUBSYS", false},
    {"debug_file", "NCCL_DEBUG_FILE", false},
    {"interface", "NCCL_SOCKET_IFNAME", false},
    {"ib_disable", "NCCL_IB_DISABLE", true},
    {"ib_hca", "NCCL_IB_HCA", false},
    {"p2p_disable", "NCCL_P2P_DISABLE", true},
    {"shm_disable", "NCCL_SHM_DISABLE", true},
};

std::mutex turns;

}  // namespace

std::optional<std::string> variable(const std::string& name) {
  const std::lock_guard lock(turns);
  const char* const value = std::getenv(name.c_str());
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

void set_variable(const std::string& name, const std::string& value) {
  const std::lock_guard lock(turns);
  const char* const now = std::getenv(name.c_str());
  if (now == nullptr || value != now) setenv(name.c_str(), value.c_str(), 1);
}

void unset_variable(const std::string& name) {
  const std::lock_guard lock(turns);
  unsetenv(name.c_str());
}

void fix_variable(const std::string& name, const std::string& value, const std::string& why) {
  static std::mutex mutex;
  static std::map<std::string, std::string> fixed;
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = fixed.emplace(name, value);
  if (!is_new && entry->second != value) {
    throw CommError(CommStatus::unsupported, why + ": NCCL reads " + name + " once per process, and it has been \"" +
                                                 entry->second + "\" for an earlier communicator; \"" + value +
                                                 "\" needs a new process");
  }
  if (is_new) set_variable(name, value);
}

Settings Settings::of(const Host& host) {
  const Options& options = host.options();
  const Settings settings = {options.flag("share_gpu")};
  for (const auto& [option, name, is_switch] : kVariables) {
    if (!options.given(option)) continue;
    const std::string value = is_switch ? (options.flag(option) ? "1" : "0") : options.text(option);
    if (!value.empty()) fix_variable(name, value, std::string("comm.options.") + option);
  }
  // NCCL rejects two ranks of one host on one GPU; with this it treats them as ranks of different hosts.
  if (settings.share_gpu) {
    fix_variable("NCCL_HOSTID", "ddprun-rank-" + std::to_string(host.rank()), "comm.options.share_gpu");
  }
  return settings;
}

void stay_on_loopback(const Host& host) {
  constexpr char kName[] = "NCCL_SOCKET_IFNAME";
  if (variable(kName)) return;
  fix_variable(kName, "=lo", "a group of ranks on one host");
  host.log(DDPRUN_LOG_DEBUG, "all ranks are on one host: NCCL_SOCKET_IFNAME is \"=lo\"");
}

}  // namespace ddprun::nccl_backend
