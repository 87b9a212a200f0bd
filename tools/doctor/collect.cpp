// Versions, plugins, GPUs, names, variables, the launcher. Plugins and GPUs are loaded, and names resolved, in a child
// process, so that one that crashes or hangs is a finding, and this process stays free of LibTorch and CUDA.
#include <gnu/libc-version.h>
#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/log.hpp"
#include "base/subprocess.hpp"
#include "base/version.hpp"
#include "cuda/driver.hpp"
#include "cuda/nvml.hpp"
#include "ddprun/error.hpp"
#include "launch/job_folder.hpp"
#include "launch/net/address.hpp"
#include "launch/world.hpp"
#include "plugin/library.hpp"
#include "plugin/search.hpp"
#include "record/environment.hpp"
#include "tools/doctor/facts.hpp"
#include "tools/doctor/files.hpp"

namespace ddprun::doctor {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kLoadLimit{30};
constexpr std::chrono::seconds kResolverLimit{10};

// PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
std::string distribution(const std::string& root) {
  std::string name = line_after(text_of(root + "/etc/os-release"), "PRETTY_NAME=");
  std::erase(name, '"');
  return name.empty() ? "unknown" : name;
}

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Version and library of a plugin, a line each. Throws the reason if it is refused.
std::string describe(const plugin::File& file) {
  const plugin::Listed listed = plugin::inspect(file);
  if (const auto* refusal = std::get_if<std::string>(&listed.content)) throw Error(ExitCode::plugin, *refusal);
  const auto lines = [](const std::string& version, const std::string& library) { return version + "\n" + library; };
  if (const auto* comm = std::get_if<const ddprun_comm_plugin*>(&listed.content)) {
    return lines((*comm)->version, (*comm)->library);
  }
  if (const auto* model = std::get_if<const ddprun_model_plugin*>(&listed.content)) {
    return lines((*model)->version, std::string("Torch ") + (*model)->torch_version);
  }
  return lines(std::get<const ddprun_dataset_plugin*>(listed.content)->version, "");
}

std::string describe_gpus() {
  log::set_level(log::Level::warning);  // a missing NVML is a finding
  json list = json::array();
  const cuda::Nvml nvml;
  for (const cuda::Gpu& gpu : cuda::gpus()) {
    const int64_t in_use = nvml.sample(gpu.bus_id).memory_used;
    list.push_back({{"name", gpu.name}, {"bus_id", gpu.bus_id}, {"memory", gpu.memory_bytes}, {"in_use", in_use}});
  }
  return dump({{"cuda", cuda::driver_version()}, {"list", list}});
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 ...": the first word that is a version.
std::string kernel_driver(const std::string& root) {
  std::istringstream words(line_after(text_of(root + "/proc/driver/nvidia/version"), "NVRM version:"));
  for (std::string word; words >> word;) {
    const bool digits = word.find_first_not_of("0123456789.") == std::string::npos;
    if (digits && std::count(word.begin(), word.end(), '.') >= 1) return word;
  }
  return "";
}

std::string addresses_of(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(name.c_str(), nullptr, &hints, &list); error != 0) {
    throw Error(ExitCode::failure, ::gai_strerror(error));
  }
  json addresses = json::array();
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    const std::string text = numeric_address(one->ai_addr);
    const bool known = std::find(addresses.begin(), addresses.end(), text) != addresses.end();
    if (!text.empty() && !known) addresses.push_back(text);
  }
  ::freeaddrinfo(list);
  return addresses.dump();
}

Variables versions(const std::string& root) {
  return {{"ddprun", version()},
          {"compiler", record::collect_environment({}).compiler},
          {"kernel", first_line(root + "/proc/sys/kernel/osrelease")},
          {"distribution", distribution(root)},
          {"glibc", ::gnu_get_libc_version()}};
}

}  // namespace

std::vector<Plugin> plugins(const plugin::Registry& registry) {
  std::vector<Plugin> found;
  for (const plugin::File& file : plugin::scan(registry.folders())) {
    Plugin plugin;
    plugin.kind = plugin::name_of(file.kind);
    plugin.name = file.name;
    plugin.path = file.path.string();
    try {
      std::istringstream about(text_from_subprocess([&] { return describe(file); }, kLoadLimit));
      std::getline(about, plugin.version);
      std::getline(about, plugin.library);
    } catch (const Error& error) {
      plugin.error = error.what();
    }
    found.push_back(std::move(plugin));
  }
  return found;
}

Gpus gpus(const std::string& root) {
  Gpus gpus;
  gpus.driver = cuda::driver_installed();
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  gpus.hidden = visible != nullptr && (*visible == '\0' || std::string_view(visible) == "-1");
  gpus.driver_version = kernel_driver(root);
  try {
    const json found = json::parse(text_from_subprocess(describe_gpus, kLoadLimit));
    gpus.cuda = found.at("cuda");
    for (const json& one : found.at("list")) {
      Gpu gpu{.name = one.at("name"), .bus_id = one.at("bus_id"), .memory = one.at("memory"), .in_use = {}};
      if (const int64_t in_use = one.at("in_use"); in_use >= 0) gpu.in_use = in_use;
      gpus.list.push_back(std::move(gpu));
    }
  } catch (const Error& error) {
    gpus.error = error.what();
  }
  return gpus;
}

Resolved resolve(const std::string& name) {
  Resolved resolved;
  resolved.name = name;
  try {
    resolved.addresses = json::parse(text_from_subprocess([&] { return addresses_of(name); }, kResolverLimit));
    if (resolved.addresses.empty()) resolved.error = "no IPv4 or IPv6 address";
  } catch (const Error& error) {
    resolved.error = error.what();
  }
  return resolved;
}

Variables variables(const char* const* environment) {
  constexpr std::array<std::string_view, 6> kPrefixes = {"GLOO_",       "NCCL_",        "UCX_",
                                                         "TORCH_NCCL_", "OMPI_MCA_btl", "CUDA_VISIBLE"};
  constexpr std::array<std::string_view, 5> kNames = {"MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS",
                                                      "LD_LIBRARY_PATH", "DDPRUN_PLUGIN_PATH"};
  Variables found;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (name.size() == entry.size()) continue;
    const bool listed = std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
                        std::any_of(kPrefixes.begin(), kPrefixes.end(),
                                    [&](std::string_view prefix) { return name.starts_with(prefix); });
    if (listed) found.emplace_back(name, entry.substr(name.size() + 1));
  }
  std::sort(found.begin(), found.end());
  return found;
}

Launcher launcher() {
  try {
    const auto world = launch::discover(std::nullopt);
    if (!world) return {};
    std::string text = world->launcher + ": rank " + std::to_string(world->rank) + " of " + std::to_string(world->size);
    if (!world->is_own()) text += ", they meet at " + world->master_addr + ":" + std::to_string(world->master_port);
    return {text, ""};
  } catch (const Error& error) {
    return {"", error.what()};
  }
}

Facts collect(const std::string& root, const plugin::Registry& registry) {
  Facts facts;
  facts.hostname = launch::host_name();
  facts.versions = versions(root);
  facts.plugin_folders = registry.folders();
  facts.plugins = plugins(registry);
  facts.cores = cores(root);
  facts.memory = memory(root);
  facts.numa = numa(root, facts.cores);
  facts.gpus = gpus(root);
  facts.network.interfaces = interfaces(root);
  facts.network.rdma_devices = names_in(root + "/sys/class/infiniband");
  facts.network.host = resolve(facts.hostname);
  if (const char* master = std::getenv("MASTER_ADDR")) facts.network.master = resolve(master);
  facts.limits = limits(root, launch::job_folder_base());
  facts.variables = variables(environ);
  facts.launcher = launcher();
  return facts;
}

}  // namespace ddprun::doctor
