#include "record/environment.hpp"

#include <fmt/chrono.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.hpp"
#include "base/text.hpp"
#include "ddprun/plugin/host.hpp"

namespace ddprun::record {
namespace {

std::string compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

// What follows `key` in the first line of a file in /proc that begins with it; "" if none does.
std::string value_in(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return line.substr(std::min(line.find_first_not_of(": \t", key.size()), line.size()));
  }
  return "";
}

}  // namespace

Environment collect_environment(std::map<std::string, std::string> extra) {
  Environment found;
  found.ddprun = version();
  found.compiler = compiler();
  found.date = fmt::format("{:%Y-%m-%dT%H:%M:%S%z}", fmt::localtime(std::time(nullptr)));
  utsname system{};
  if (uname(&system) == 0) {
    found.host = system.nodename;
    found.kernel = std::string(system.sysname) + " " + system.release;
  }
  found.cpu_model = value_in("/proc/cpuinfo", "model name");
  found.cores = usable_cores();
  found.host_cores = sysconf(_SC_NPROCESSORS_ONLN);
  found.memory_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  found.load = value_in("/proc/loadavg", "");
  found.extra = std::move(extra);
  return found;
}

// Not getrusage's ru_maxrss: it is kept across fork and exec, so a small process would report the peak of a large
// parent.
int64_t peak_memory_bytes() {
  const std::string kibibytes = value_in("/proc/self/status", "VmHWM");
  return kibibytes.empty() ? -1 : std::atoll(kibibytes.c_str()) * 1024;
}

std::string to_json(const Environment& environment) {
  nlohmann::ordered_json object = {
      {"ddprun", environment.ddprun},
      {"compiler", environment.compiler},
      {"date", environment.date},
      {"host", environment.host},
      {"kernel", environment.kernel},
      {"cpu_model", environment.cpu_model},
      {"cores", environment.cores},
      {"host_cores", environment.host_cores},
      {"memory_bytes", environment.memory_bytes},
      {"load", environment.load},
  };
  for (const auto& [key, value] : environment.extra) object[key] = value;
  return object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

void write_environment(const std::string& run_dir, const Environment& environment) {
  replace_file((std::filesystem::path(run_dir) / "environment.json").string(), to_json(environment));
}

}  // namespace ddprun::record
