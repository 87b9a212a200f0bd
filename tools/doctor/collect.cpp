#include "tools/doctor/collect.hpp"

#include <gnu/libc-version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <string_view>

#include "base/version.hpp"
#include "ddprun/error.hpp"
#include "launch/job_folder.hpp"
#include "launch/world.hpp"
#include "tools/doctor/files.hpp"

namespace ddprun::doctor {
namespace {

// PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
std::string distribution(const std::string& root) {
  std::string name = line_after(text_of(root + "/etc/os-release"), "PRETTY_NAME=");
  std::erase(name, '"');
  return name.empty() ? "unknown" : name;
}

std::string compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

}  // namespace

std::string hostname() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::vector<std::pair<std::string, std::string>> versions(const std::string& root) {
  return {{"ddprun", version()},
          {"compiler", compiler()},
          {"kernel", first_line(root + "/proc/sys/kernel/osrelease")},
          {"distribution", distribution(root)},
          {"glibc", ::gnu_get_libc_version()}};
}

std::vector<std::pair<std::string, std::string>> variables(const char* const* environment) {
  constexpr std::array<std::string_view, 6> kPrefixes = {"GLOO_",       "NCCL_",        "UCX_",
                                                         "TORCH_NCCL_", "OMPI_MCA_btl", "CUDA_VISIBLE"};
  constexpr std::array<std::string_view, 5> kNames = {"MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS",
                                                      "LD_LIBRARY_PATH", "DDPRUN_PLUGIN_PATH"};
  std::vector<std::pair<std::string, std::string>> found;
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
  facts.hostname = hostname();
  facts.versions = versions(root);
  facts.plugin_folders = registry.folders();
  facts.plugins = plugins(registry);
  facts.cores = cores(root);
  facts.memory = memory(root);
  facts.numa = numa(root, facts.cores);
  facts.gpus = gpus(root);
  facts.network.interfaces = interfaces(root);
  facts.network.rdma_devices = rdma_devices(root);
  facts.network.host = resolve(facts.hostname);
  if (const char* master = std::getenv("MASTER_ADDR")) facts.network.master = resolve(master);
  facts.limits = limits(root, launch::job_folder_base());
  facts.variables = variables(environ);
  facts.launcher = launcher();
  return facts;
}

}  // namespace ddprun::doctor
