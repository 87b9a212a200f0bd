// Plugins and GPUs: what is known only after a library is loaded. Each is loaded in a child process, so that one that
// crashes or hangs is a finding, and this process stays free of LibTorch and CUDA.
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/log.hpp"
#include "base/subprocess.hpp"
#include "cuda/driver.hpp"
#include "cuda/nvml.hpp"
#include "ddprun/error.hpp"
#include "plugin/library.hpp"
#include "plugin/search.hpp"
#include "tools/doctor/collect.hpp"
#include "tools/doctor/files.hpp"

namespace ddprun::doctor {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kLimit{30};

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Version and library of a plugin, or the error.
std::string describe(const plugin::File& file) {
  const plugin::Listed listed = plugin::inspect(file);
  json about = {{"version", ""}, {"library", ""}, {"error", ""}};
  if (const auto* refusal = std::get_if<std::string>(&listed.content)) {
    about["error"] = *refusal;
  } else if (const auto* comm = std::get_if<const ddprun_comm_plugin*>(&listed.content)) {
    about["version"] = (*comm)->version;
    about["library"] = (*comm)->library;
  } else if (const auto* model = std::get_if<const ddprun_model_plugin*>(&listed.content)) {
    about["version"] = (*model)->version;
    about["library"] = std::string("Torch ") + (*model)->torch_version;
  } else {
    about["version"] = std::get<const ddprun_dataset_plugin*>(listed.content)->version;
  }
  return dump(about);
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

}  // namespace

std::vector<Plugin> plugins(const plugin::Registry& registry) {
  std::vector<Plugin> found;
  for (const plugin::File& file : plugin::scan(registry.folders())) {
    Plugin plugin;
    plugin.kind = plugin::name_of(file.kind);
    plugin.name = file.name;
    plugin.path = file.path.string();
    try {
      const json about = json::parse(text_from_subprocess([&] { return describe(file); }, kLimit));
      plugin.version = about.at("version");
      plugin.library = about.at("library");
      plugin.error = about.at("error");
    } catch (const Error& error) {
      plugin.error = "the process that loaded it: " + std::string(error.what());
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
    const json found = json::parse(text_from_subprocess(describe_gpus, kLimit));
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

}  // namespace ddprun::doctor
