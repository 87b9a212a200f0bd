#include "settings.hpp"

#include <map>
#include <mutex>

#include "environment.hpp"

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

bool switch_of(const Host& host, const char* option) {
  const std::string value = host.option(option, "false");
  if (value != "true" && value != "false") {
    throw CommError(CommStatus::invalid,
                    std::string("comm.options.") + option + " = \"" + value + "\": expected true or false");
  }
  return value == "true";
}

}  // namespace

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
  host.refuse_options_beyond({"debug", "debug_subsys", "debug_file", "interface", "ib_disable", "ib_hca", "p2p_disable",
                              "shm_disable", "share_gpu", "verify"});
  const Settings settings = {switch_of(host, "share_gpu"), switch_of(host, "verify")};
  for (const auto& [option, name, is_switch] : kVariables) {
    const std::string value = host.option(option, "");
    if (value.empty()) continue;
    const std::string as_nccl_has_it = !is_switch ? value : std::string(1, switch_of(host, option) ? '1' : '0');
    fix_variable(name, as_nccl_has_it, std::string("comm.options.") + option);
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
