// The memory that a process can still get, with limits of cgroups of both versions.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "ddprun/plugin/comm_plugin.hpp"
#include "host/liveness.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::host {
namespace {

// A folder with files of /proc and /sys.
class System {
 public:
  System() { file("/proc/meminfo", "MemTotal:  4000 kB\nMemAvailable:  1000 kB\n"); }
  void file(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = folder_.path().string() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  uint64_t available() const { return available_memory(folder_.path().string()); }

 private:
  testing::TempDir folder_;
};

TEST_CASE("without a cgroup, what the system can give counts") {
  const System system;
  CHECK(system.available() == 1000 << 10);
}

TEST_CASE("a system without a figure is an error") {
  const System system;
  system.file("/proc/meminfo", "MemTotal:  4000 kB\n");
  CHECK_THROWS_AS(system.available(), CommError);
}

TEST_CASE("version 2: what the limit leaves, and page cache that can be dropped") {
  const System system;
  system.file("/proc/self/cgroup", "0::/job\n");
  system.file("/sys/fs/cgroup/job/memory.max", "500000\n");
  system.file("/sys/fs/cgroup/job/memory.current", "300000\n");
  CHECK(system.available() == 200000);
  system.file("/sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 50000\n");
  CHECK(system.available() == 250000);
  system.file("/sys/fs/cgroup/job/memory.current", "600000\n");
  CHECK(system.available() == 0);
  system.file("/sys/fs/cgroup/job/memory.max", "max\n");
  CHECK(system.available() == 1000 << 10);
}

TEST_CASE("the limit of a parent counts too") {
  const System system;
  system.file("/proc/self/cgroup", "0::/user/job\n");
  system.file("/sys/fs/cgroup/user/job/memory.max", "500000\n");
  system.file("/sys/fs/cgroup/user/job/memory.current", "0\n");
  system.file("/sys/fs/cgroup/user/memory.max", "100000\n");
  system.file("/sys/fs/cgroup/user/memory.current", "30000\n");
  CHECK(system.available() == 70000);
}

TEST_CASE("version 1, and a path of the host that is not mounted in the container") {
  const System system;
  system.file("/proc/self/cgroup", "9:cpu,cpuacct:/a\n4:memory:/docker/abc\n0::/\n");
  system.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "400000\n");
  system.file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
  CHECK(system.available() == 300000);
  system.file("/sys/fs/cgroup/memory/memory.stat", "total_inactive_file 60000\n");
  CHECK(system.available() == 360000);
}

}  // namespace
}  // namespace ddprun::host
