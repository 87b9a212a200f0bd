// The facts that a fake tree gives.
#include <doctest/doctest.h>
#include <unistd.h>

#include "ddprun/error.hpp"
#include "support/paths.hpp"
#include "support/text.hpp"
#include "support/variable.hpp"
#include "testing/hosts.hpp"
#include "tools/doctor/facts.hpp"
#include "tree.hpp"

using namespace ddprun;
using namespace ddprun::doctor;
using testing::contains;
using testing::Tree;
using testing::Variable;

TEST_CASE("a list of CPUs is read, and garbage gives none") {
  CHECK(cpu_list("0-3,8\n") == std::vector<int>{0, 1, 2, 3, 8});
  CHECK(cpu_list("5") == std::vector<int>{5});
  for (const char* bad : {"", "x", "3-1", "-1", "0-99999999999", "0-", "1,,2", "0-18446744073709551615"}) {
    CAPTURE(bad);
    CHECK(cpu_list(bad).empty());
  }
}

TEST_CASE("cores: the machine's, those of the mask, and SMT") {
  Tree tree;
  tree.file("/sys/devices/system/cpu/online", "0-3\n");
  tree.file("/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0,2\n");
  for (const char* cpu : {"0", "1", "2", "3"}) {
    tree.file(std::string("/sys/devices/system/cpu/cpu") + cpu + "/topology/thread_siblings_list",
              cpu[0] < '2' ? "0-1\n" : "2-3\n");
  }
  const Cores found = cores(tree.root());
  CHECK(found.online == 4);
  CHECK(found.usable == 2);
  CHECK(found.usable_list == "0,2");
  CHECK(found.threads_per_core == 2);
}

TEST_CASE("cgroup version 2: the smallest limit of the group and those above it") {
  Tree tree;
  tree.file("/proc/self/cgroup", "0::/user/job\n");
  tree.file("/sys/fs/cgroup/user/job/memory.max", "max\n").file("/sys/fs/cgroup/user/memory.max", "1000\n");
  tree.file("/sys/fs/cgroup/user/memory.current", "400\n").file("/sys/fs/cgroup/memory.max", "5000\n");
  tree.file("/sys/fs/cgroup/user/job/cpu.max", "max 100000\n").file("/sys/fs/cgroup/user/cpu.max", "150000 100000\n");
  tree.file("/sys/fs/cgroup/user/job/pids.max", "77\n");
  const GroupLimits found = group_limits(tree.root());
  CHECK(found.memory == 1000);
  CHECK(found.memory_in_use == 400);
  CHECK(found.cpus == 1.5);
  CHECK(found.processes == 77);
}

TEST_CASE("cgroup version 1: a container sees the host's path, and only the top folder") {
  Tree tree;
  tree.file("/proc/self/cgroup", "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n2:pids:/docker/abc\n");
  tree.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
  tree.file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1048576\n");
  tree.file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  tree.file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  tree.file("/sys/fs/cgroup/pids/pids.max", "max\n");
  const GroupLimits found = group_limits(tree.root());
  CHECK(found.memory == int64_t{1} << 31);
  CHECK(found.memory_in_use == 1 << 20);
  CHECK_FALSE(found.cpus);
  CHECK_FALSE(found.processes);
}

TEST_CASE("cgroups: no limit where the file holds the largest number, garbage or nothing") {
  Tree tree;
  tree.file("/proc/self/cgroup", "no colon\n::\n:::\n4:memory\n4:memory:/a/../b\n0::relative\n");
  for (const char* text : {"9223372036854771712\n", "garbage\n", "", "-5\n", "99999999999999999999999\n"}) {
    CAPTURE(text);
    tree.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", text).file("/sys/fs/cgroup/memory.max", text);
    tree.file("/sys/fs/cgroup/cpu.max", text);
    const GroupLimits found = group_limits(tree.root());
    CHECK_FALSE(found.memory);
    CHECK_FALSE(found.cpus);
  }
}

TEST_CASE("memory and NUMA nodes in bytes; a node of the mask is usable") {
  Tree tree;
  tree.file("/proc/meminfo", "MemTotal:       2048 kB\nMemAvailable:   1024 kB\n");
  const Memory found = memory(tree.root());
  CHECK(found.total == 2 << 20);
  CHECK(found.available == 1 << 20);

  const std::string nodes = "/sys/devices/system/node/";
  tree.file(nodes + "node1/cpulist", "2-3\n").file(nodes + "node0/cpulist", "0-1\n").file(nodes + "nodex/cpulist", "");
  tree.file(nodes + "node0/meminfo", "Node 0 MemTotal:       2048 kB\n");
  const auto list = numa(tree.root(), {.online = 4, .usable = 1, .usable_list = "1"});
  REQUIRE(list.size() == 2);
  CHECK(list[0].cpus == "0-1");
  CHECK(list[0].memory == 2 << 20);
  CHECK(list[0].usable);
  CHECK_FALSE(list[1].usable);
  CHECK_FALSE(list[1].memory);
}

TEST_CASE("limits: soft values, unlimited, and what is not reported") {
  Tree tree;
  tree.file("/proc/self/limits",
            "Limit                     Soft Limit           Hard Limit           Units     \n"
            "Max processes             unlimited            unlimited            processes \n"
            "Max open files            1024                 524288               files     \n");
  const Limits found = limits(tree.root(), tree.root());
  REQUIRE(found.files);
  CHECK(found.files->value() == 1024);
  REQUIRE(found.processes);
  CHECK_FALSE(found.processes->has_value());
  CHECK_FALSE(found.memlock);
  CHECK(found.shm.error == "No such file or directory");
  CHECK(found.job_folder.error.empty());
  CHECK(found.job_folder.size > 0);
  CHECK(std::filesystem::directory_iterator(tree.root() + "/proc") != std::filesystem::directory_iterator());
  for (const auto& entry : std::filesystem::directory_iterator(tree.root())) {
    CHECK_FALSE(contains(entry.path().string(), "doctor-"));
  }
}

TEST_CASE("links: the MTU, and only speeds that are speeds") {
  Tree tree;
  tree.file("/sys/class/net/eth0/speed", "25000\n").file("/sys/class/net/eth1/speed", "-1\n");
  tree.file("/sys/class/net/wlan0/speed", "4294967295\n").file("/sys/class/net/eth0/mtu", "9000\n");
  std::vector<Interface> list(3);
  list[0].name = "eth0";
  list[1].name = "eth1";
  list[2].name = "wlan0";
  read_links(tree.root(), list);
  CHECK(list[0].speed == 25000);
  CHECK(list[0].mtu == 9000);
  CHECK_FALSE(list[1].speed);
  CHECK(list[1].mtu == 0);
  CHECK_FALSE(list[2].speed);
}

TEST_CASE("the default route is that of one host's interface to another network") {
  if (!testing::Hosts::are_possible()) return;
  const testing::Hosts hosts(1, 2);
  const auto route_with = [&](const std::string& command) {
    hosts.run(0, command);
    const auto find = [](testing::Rank& rank) {
      for (const Interface& one : interfaces("")) {
        if (one.default_route) rank.report(one.name);
      }
    };
    return testing::run_ranks(1, testing::As::processes, std::chrono::seconds(30), find, hosts.placement(1))[0].records;
  };
  CHECK(route_with("true").empty());
  CHECK(route_with("ip route add default via 10.84.0.99 metric 600") == std::vector<std::string>{"eth1"});
  CHECK(route_with("ip route add default via 10.83.0.99 metric 100") == std::vector<std::string>{"eth0"});
}

TEST_CASE("this host has a loopback interface with its address and MTU") {
  bool found = false;
  for (const Interface& interface : interfaces("")) {
    if (!interface.is_loopback) continue;
    found = true;
    CHECK(interface.mtu > 0);
    CHECK_FALSE(interface.default_route);
  }
  CHECK(found);
}

TEST_CASE("names resolve, or the error says why not") {
  CHECK(resolve("127.0.0.1").addresses == std::vector<std::string>{"127.0.0.1"});
  CHECK(resolve("127.0.0.1").error.empty());
  CHECK_FALSE(resolve("no-such-host.invalid").error.empty());
  CHECK_FALSE(resolve("").error.empty());
}

TEST_CASE("the variables that change communication, sorted, and no others") {
  const char* const environment[] = {
      "UCX_TLS=tcp", "HOME=/x", "NCCL_DEBUG=INFO", "MASTER_ADDR=a=b", "NCCL_NOVALUE", "MASTER_ADDRESS=c", nullptr};
  const auto found = variables(environment);
  REQUIRE(found.size() == 3);
  CHECK(found[0] == std::pair<std::string, std::string>("MASTER_ADDR", "a=b"));
  CHECK(found[1].first == "NCCL_DEBUG");
  CHECK(found[2].first == "UCX_TLS");
}

TEST_CASE("the launcher: none, one, and variables that contradict each other") {
  const Variable none[] = {{"TORCHELASTIC_RUN_ID", {}},
                           {"OMPI_COMM_WORLD_RANK", {}},
                           {"SLURM_STEP_NUM_TASKS", {}},
                           {"DDPRUN_RANK", {}},
                           {"PMI_RANK", {}},
                           {"LOCAL_RANK", {}},
                           {"LOCAL_WORLD_SIZE", {}}};
  {
    const Variable unset[] = {{"RANK", {}}, {"WORLD_SIZE", {}}};
    CHECK(launcher().description.empty());
    CHECK(launcher().error.empty());
  }
  const Variable addr("MASTER_ADDR", "10.0.0.1"), port("MASTER_PORT", "29500"), size("WORLD_SIZE", "2");
  {
    const Variable rank("RANK", "1");
    CHECK(launcher().description == "env://: rank 1 of 2, they meet at 10.0.0.1:29500");
  }
  const Variable rank("RANK", "2");
  CHECK(contains(launcher().error, "RANK = 2 contradicts WORLD_SIZE = 2"));
}

TEST_CASE("a plugin that is refused or crashes is a fact, and this process lives on") {
  const std::string fakes = ddprun::testing::build_dir() + "/tests/fakes";
  bool good = false, wrong = false;
  for (const Plugin& plugin : plugins(plugin::Registry({fakes}))) {
    if (plugin.name == "good") good = plugin.error.empty() && !plugin.version.empty();
    if (plugin.name == "newer_abi") wrong = contains(plugin.error, "wrong ABI");
  }
  CHECK(good);
  CHECK(wrong);

  Tree tree;
  tree.file("/libddprun_comm_text.so", "not a library\n");
  std::filesystem::copy(DDPRUN_CRASHING, tree.root() + "/libddprun_comm_crash.so");
  const auto found = plugins(plugin::Registry({tree.root()}));
  REQUIRE(found.size() == 2);
  CHECK(found[0].name == "crash");
  CHECK(contains(found[0].error, "the child process crashed"));
  CHECK(contains(found[1].error, "cannot be loaded"));
}
