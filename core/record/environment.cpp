#include "record/environment.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.hpp"
#include "base/version.hpp"
#include "ddprun/plugin/host_identity.hpp"

namespace ddprun::record {
namespace {

std::string compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[64];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &local)};
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

Environment collect_environment(std::map<std::string, std::string> extra) {
  Environment found;
  found.ddprun = version();
  found.compiler = compiler();
  found.date = now();
  utsname system{};
  if (uname(&system) == 0) {
    found.host = system.nodename;
    found.kernel = std::string(system.sysname) + " " + system.release;
  }
  found.cpu_model = cpu_model();
  found.cores = usable_cores();
  found.host_cores = sysconf(_SC_NPROCESSORS_ONLN);
  found.memory_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  found.load = first_line("/proc/loadavg");
  found.extra = std::move(extra);
  return found;
}

// Not getrusage's ru_maxrss: it is kept across fork and exec, so a small process would report the peak of a large
// parent.
int64_t peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    long long kibibytes = 0;
    if (std::sscanf(line.c_str(), "VmHWM: %lld kB", &kibibytes) == 1) return kibibytes * 1024;
  }
  return -1;
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
