// What child processes and the environment report: plugins, GPUs, names, variables, the launcher. Plugins and GPUs are
// loaded, and names resolved, in a child, so that one that crashes or hangs is a finding, and this process stays free
// of LibTorch and CUDA.
#include <fmt/format.h>
#include <fnmatch.h>
#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <variant>

#include "base/subprocess.hpp"
#include "cuda/driver.hpp"
#include "cuda/library.hpp"
#include "ddprun/error.hpp"
#include "launch/job_folder.hpp"
#include "launch/net/address.hpp"
#include "launch/world.hpp"
#include "plugin/library.hpp"
#include "plugin/search.hpp"
#include "tools/doctor/facts.hpp"

namespace ddprun::doctor {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kLoadLimit{30};
constexpr std::chrono::seconds kResolverLimit{10};

// Version and library of a plugin, a line each. Throws the reason if it is refused.
std::string describe(const plugin::File& file) {
  const auto lines = []<class Content>(const Content& content) -> std::string {
    if constexpr (requires { content->library; }) {
      return fmt::format("{}\n{}", content->version, content->library);
    } else if constexpr (requires { content->torch_version; }) {
      return fmt::format("{}\nTorch {}", content->version, content->torch_version);
    } else if constexpr (requires { content->version; }) {
      return content->version;
    } else {
      throw Error(ExitCode::plugin, content);
    }
  };
  return std::visit(lines, plugin::inspect(file).content);
}

// The bytes that all processes use on the GPU with an address (Gpu::bus_id), as NVIDIA's management library (NVML)
// reports them; -1: not known. Called in a child, which ends without nvmlShutdown().
int64_t memory_in_use(const cuda::Library& nvml, const std::string& bus_id) {
  struct Memory {  // nvmlMemory_t
    unsigned long long total, free, used;
  } memory{};
  void* device = nullptr;
  const auto calls = [&]<class... Types>(const char* name, Types... arguments) {
    const auto function = nvml.function<int(Types...)>(name);
    return function != nullptr && function(arguments...) == 0;  // NVML_SUCCESS
  };
  const bool is_known = nvml.found() && calls("nvmlInit_v2") &&
                        calls("nvmlDeviceGetHandleByPciBusId_v2", bus_id.c_str(), &device) &&
                        calls("nvmlDeviceGetMemoryInfo", device, &memory);
  return is_known ? static_cast<int64_t>(memory.used) : -1;
}

std::string describe_gpus() {
  json list = json::array();
  const cuda::Library nvml("libnvidia-ml.so.1");
  for (const cuda::Gpu& gpu : cuda::gpus()) {
    const int64_t in_use = memory_in_use(nvml, gpu.bus_id);
    list.push_back({{"name", gpu.name}, {"bus_id", gpu.bus_id}, {"memory", gpu.memory_bytes}, {"in_use", in_use}});
  }
  const json all = {{"cuda", cuda::driver_version()}, {"list", list}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

// As JSON, each once.
std::string addresses_of(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(name.c_str(), nullptr, &hints, &list);
  if (error != 0) throw Error(ExitCode::failure, ::gai_strerror(error));
  json addresses = json::array();
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    const json text = numeric_address(one->ai_addr);
    if (text != "" && std::ranges::count(addresses, text) == 0) addresses.push_back(text);
  }
  ::freeaddrinfo(list);
  return addresses.dump();
}

}  // namespace

std::vector<Plugin> plugins(const plugin::Registry& registry) {
  std::vector<Plugin> found;
  for (const plugin::File& file : plugin::scan(registry.folders())) {
    Plugin plugin{plugin::name_of(file.kind), file.name, file.path.string(), {}, {}, {}};
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

Gpus gpus() {
  Gpus gpus;
  gpus.driver = cuda::driver_installed();
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  gpus.hidden = visible != nullptr && (*visible == '\0' || std::string_view(visible) == "-1");
  try {
    const json found = json::parse(text_from_subprocess(describe_gpus, kLoadLimit));
    gpus.cuda = found.at("cuda");
    for (const json& one : found.at("list")) {
      const int64_t in_use = one.at("in_use");
      gpus.list.push_back(
          {one.at("name"), one.at("bus_id"), one.at("memory"), in_use < 0 ? std::nullopt : std::optional(in_use)});
    }
  } catch (const Error& error) {
    gpus.error = error.what();
  }
  return gpus;
}

Resolved resolve(const std::string& name) {
  Resolved resolved{name, {}, {}};
  try {
    resolved.addresses = json::parse(text_from_subprocess([&] { return addresses_of(name); }, kResolverLimit));
    if (resolved.addresses.empty()) resolved.error = "no IPv4 or IPv6 address";
  } catch (const Error& error) {
    resolved.error = error.what();
  }
  return resolved;
}

Variables variables(const char* const* environment) {
  constexpr const char* kPatterns[] = {
      "GLOO_*",      "NCCL_*",      "UCX_*",           "TORCH_NCCL_*",    "OMPI_MCA_btl*",     "CUDA_VISIBLE*",
      "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS", "LD_LIBRARY_PATH", "DDPRUN_PLUGIN_PATH"};
  Variables found;
  for (; *environment != nullptr; ++environment) {
    const std::string entry = *environment, name = entry.substr(0, entry.find('='));
    const auto is_name = [&](const char* pattern) { return ::fnmatch(pattern, name.c_str(), 0) == 0; };
    const bool listed = name != entry && std::ranges::any_of(kPatterns, is_name);
    if (listed) found.emplace_back(name, entry.substr(name.size() + 1));
  }
  std::ranges::sort(found);
  return found;
}

Launcher launcher() {
  try {
    const auto world = launch::discover(std::nullopt);
    if (!world) return {};
    const std::string at =
        world->is_own() ? "" : fmt::format(", they meet at {}:{}", world->master_addr, world->master_port);
    return {fmt::format("{}: rank {} of {}{}", world->launcher, world->rank, world->size, at), ""};
  } catch (const Error& error) {
    return {"", error.what()};
  }
}

Facts collect(const std::string& root, const plugin::Registry& registry) {
  Facts facts;
  facts.hostname = launch::host_name();
  facts.plugin_folders = registry.folders();
  facts.plugins = plugins(registry);
  facts.cores = cores(root);
  facts.memory = memory(root);
  facts.group = group_limits(root);
  facts.numa = numa(root, facts.cores);
  facts.gpus = gpus();
  facts.gpus.driver_version = gpu_driver(root);
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
