// Findings: pure functions, with ordinary and hostile values.
#include <doctest/doctest.h>

#include <climits>
#include <cstdint>

#include "support/contains.hpp"
#include "tools/doctor/rules.hpp"

#include <nlohmann/json.hpp>

using namespace ddprun;
using namespace ddprun::doctor;
using testing::contains;

namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

const Finding* find(const std::vector<Finding>& findings, const std::string& name) {
  for (const Finding& one : findings) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

// "warning: 64.0 KiB"; "" if there is no such finding. Checks that what is not ok says what to do.
std::string brief(const std::vector<Finding>& findings, const std::string& name) {
  for (const Finding& one : findings) CHECK((one.state == State::ok) == one.advice.empty());
  const Finding* found = find(findings, name);
  return found == nullptr ? "" : std::string(name_of(found->state)) + ": " + found->value;
}

std::string advice(const std::vector<Finding>& findings, const std::string& name) {
  const Finding* found = find(findings, name);
  return found == nullptr ? "" : found->advice;
}

Interface interface(const std::string& name, const std::vector<std::string>& addresses, int64_t mtu = 1500) {
  Interface made;
  made.name = name;
  made.is_up = true;
  made.is_loopback = name == "lo";
  made.addresses = addresses;
  made.mtu = mtu;
  return made;
}

Network network() {
  Network made;
  made.interfaces = {interface("lo", {"127.0.0.1"}, 65536), interface("eth0", {"10.0.0.3", "fd00::3"})};
  made.interfaces[1].default_route = true;
  made.host = {"node3", {"10.0.0.3"}, ""};
  return made;
}

Limits limits() {
  Limits made;
  made.memlock = Limit();
  made.files = Limit(65536);
  made.processes = Limit();
  made.shm = {"/dev/shm", 8 * kGiB, 8 * kGiB, ""};
  made.job_folder = {"/tmp", kGiB, kGiB, ""};
  return made;
}

bool all_ok(const std::vector<Finding>& findings) {
  for (const Finding& one : findings) {
    if (one.state != State::ok) MESSAGE(one.name << ": " << one.value);
  }
  return std::all_of(findings.begin(), findings.end(), [](const Finding& one) { return one.state == State::ok; });
}

}  // namespace

TEST_CASE("an ordinary host has nothing to correct") {
  CHECK(all_ok(judge_limits(limits(), true)));
  CHECK(all_ok(judge_network(network())));
  CHECK(all_ok(judge_cores({.online = 8, .usable = 8, .cpu_time = 8.0, .usable_list = "0-7"})));
  CHECK(all_ok(judge_memory({16 * kGiB, 8 * kGiB, {}, {}})));
  CHECK(all_ok(judge_launcher({})));
  CHECK(all_ok(judge_variables({}, network(), {})));
  CHECK(
      all_ok(judge_gpus({true, "580.65.06", "13.0", {{"NVIDIA H200", "0000:1b:00.0", 140 * kGiB, kGiB}}, "", false})));
}

TEST_CASE("memlock matters with RDMA") {
  Limits found = limits();
  found.memlock = Limit(65536);
  CHECK(brief(judge_limits(found, true), "memlock") == "warning: 64.0 KiB");
  CHECK(contains(advice(judge_limits(found, true), "memlock"), "`ulimit -l unlimited`"));
  CHECK(brief(judge_limits(found, false), "memlock") == "note: 64.0 KiB");
  found.memlock.reset();
  CHECK(brief(judge_limits(found, true), "memlock").empty());
}

TEST_CASE("/dev/shm: as Docker has it, full, missing") {
  Limits found = limits();
  found.shm.size = found.shm.free = 64 << 20;
  CHECK(brief(judge_limits(found, false), "/dev/shm") == "warning: 64.0 MiB, 64.0 MiB free");
  CHECK(contains(advice(judge_limits(found, false), "/dev/shm"), "docker run --shm-size=8g"));
  found.shm = {"/dev/shm", 8 * kGiB, 0, ""};
  CHECK(contains(advice(judge_limits(found, false), "/dev/shm"), "remove files"));
  found.shm = {"/dev/shm", 0, 0, "No such file or directory"};
  CHECK(brief(judge_limits(found, false), "/dev/shm") == "error: No such file or directory");
}

TEST_CASE("open files, processes, job folder") {
  Limits found = limits();
  found.files = Limit(1024);
  CHECK(brief(judge_limits(found, false), "open files") == "note: 1,024");
  found.files = Limit(0);
  CHECK(brief(judge_limits(found, false), "open files") == "warning: 0");
  found.files = Limit(UINT64_MAX);
  CHECK(brief(judge_limits(found, false), "open files").starts_with("ok: "));
  found.processes = Limit(100);
  found.group_processes = 64;
  CHECK(brief(judge_limits(found, false), "processes") == "warning: 100");
  CHECK(brief(judge_limits(found, false), "processes, cgroup") == "warning: 64");
  found.job_folder.error = "Read-only file system";
  CHECK(brief(judge_limits(found, false), "job folder") == "error: /tmp: Read-only file system");
  found.job_folder = {"/tmp", kGiB, 0, ""};
  CHECK(brief(judge_limits(found, false), "job folder").starts_with("warning: "));
}

TEST_CASE("a hostname that other hosts cannot use names the address to use") {
  Network found = network();
  found.host.addresses = {"127.0.1.1"};
  CHECK(brief(judge_network(found), "hostname") == "note: \"node3\" resolves to 127.0.1.1");
  CHECK(contains(advice(judge_network(found), "hostname"),
                 "as MASTER_ADDR, it must resolve to another address on the other hosts; or use the address 10.0.0.3"));
  found.host.addresses = {"10.9.9.9"};
  CHECK(contains(brief(judge_network(found), "hostname"), "which no interface of this host has"));
  found.host = {"node3", {}, "Name or service not known"};
  CHECK(contains(brief(judge_network(found), "hostname"), "does not resolve: Name or service not known"));
  found.host = {"node3", {"127.0.1.1", "10.0.0.3"}, ""};
  CHECK(brief(judge_network(found), "hostname").starts_with("ok: "));
}

TEST_CASE("interfaces: only loopback, loopback down, no route, a slow link") {
  Network found = network();
  found.interfaces[1].is_up = false;
  CHECK(brief(judge_network(found), "other hosts") == "warning: no interface but loopback is up with an address");
  CHECK(main_interface(found.interfaces) == nullptr);
  found.interfaces[0].is_up = false;
  CHECK(contains(advice(judge_network(found), "lo"), "ip link set lo up"));
  CHECK(brief(judge_network(found), "lo").starts_with("error: down"));

  found = network();
  found.interfaces[1].default_route = false;
  CHECK(brief(judge_network(found), "other hosts") == "note: no default route");

  found = network();
  found.interfaces[1].speed = 100;
  CHECK(brief(judge_network(found), "eth0") == "warning: up, 10.0.0.3, fd00::3, MTU 1500, 100 Mbit/s, default route");
  found.interfaces.clear();
  CHECK(brief(judge_network(found), "other hosts").starts_with("warning: "));
}

TEST_CASE("variables that name an interface which does not exist") {
  const auto check = [](const std::string& name, const std::string& value) {
    Network found = network();
    found.rdma_devices = {"mlx5_0"};
    return brief(judge_variables({{name, value}}, found, {}), name);
  };
  CHECK(check("GLOO_SOCKET_IFNAME", "eth0") == "ok: eth0");
  CHECK(check("GLOO_SOCKET_IFNAME", "eth9") == "warning: eth9: this host has no interface eth9");
  CHECK(check("GLOO_SOCKET_IFNAME", "eth").starts_with("warning: "));
  CHECK(check("NCCL_SOCKET_IFNAME", "eth") == "ok: eth");
  CHECK(check("NCCL_SOCKET_IFNAME", "=eth").starts_with("warning: "));
  CHECK(check("NCCL_SOCKET_IFNAME", "^docker,lo") == "ok: ^docker,lo");
  CHECK(check("NCCL_SOCKET_IFNAME", "ib,en") == "warning: ib,en: this host has no interface ib, en");
  CHECK(check("UCX_NET_DEVICES", "mlx5_0:1,eth0") == "ok: mlx5_0:1,eth0");
  CHECK(check("UCX_NET_DEVICES", "mlx5_7:1") == "warning: mlx5_7:1: this host has no interface mlx5_7");
  CHECK(check("UCX_NET_DEVICES", "all") == "ok: all");
  CHECK(contains(advice(judge_variables({{"GLOO_SOCKET_IFNAME", "x"}}, network(), {}), "GLOO_SOCKET_IFNAME"),
                 "set it to one that is up (lo, eth0)"));
  CHECK(contains(advice(judge_variables({{"GLOO_SOCKET_IFNAME", "x"}}, {}, {}), "GLOO_SOCKET_IFNAME"),
                 "no interface is up"));
  for (const char* odd : {"", ",", "^", "=", "^=", ":", ",,:,"}) {
    for (const char* name : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "UCX_NET_DEVICES"}) check(name, odd);
  }
}

TEST_CASE("other variables") {
  Network found = network();
  const auto check = [&](const std::string& name, const std::string& value) {
    return brief(judge_variables({{name, value}}, found, {.online = 4, .usable = 4, .cpu_time = {}, .usable_list = ""}),
                 name);
  };
  for (const char* bad : {"0", "65536", "-1", "port", "", "29500x", "99999999999999999999"}) {
    CAPTURE(bad);
    CHECK(check("MASTER_PORT", bad).starts_with("error: "));
  }
  CHECK(check("MASTER_PORT", "29500") == "ok: 29500");
  CHECK(check("OMP_NUM_THREADS", "1") == "ok: 1");
  CHECK(check("OMP_NUM_THREADS", "4,2") == "ok: 4,2");
  CHECK(check("OMP_NUM_THREADS", "8") == "warning: 8, but 4 cores are usable");
  CHECK(check("OMP_NUM_THREADS", "all").starts_with("warning: "));
  CHECK(check("NCCL_IB_DISABLE", "1") == "ok: 1");
  found.rdma_devices = {"mlx5_0"};
  CHECK(check("NCCL_IB_DISABLE", "1") == "warning: 1, but this host has mlx5_0");
  CHECK(check("MASTER_ADDR", "node0") == "ok: node0");
  found.master = Resolved{"localhost", {"127.0.0.1", "::1"}, ""};
  CHECK(check("MASTER_ADDR", "localhost") == "note: localhost resolves to 127.0.0.1, ::1");
  found.master = Resolved{"nowhere", {}, "Name or service not known"};
  CHECK(check("MASTER_ADDR", "nowhere") == "error: nowhere does not resolve: Name or service not known");
  CHECK(check("UCX_TLS", "tcp") == "ok: tcp");
}

TEST_CASE("cores: a mask, a cgroup's limit, SMT, nothing known") {
  const auto some = judge_cores({.online = 8, .usable = 2, .cpu_time = {}, .usable_list = "0,4"});
  CHECK(brief(some, "usable") == "note: 2 of 8: CPUs 0,4");
  const auto limited =
      judge_cores({.online = 64, .usable = 64, .threads_per_core = 2, .cpu_time = 3.5, .usable_list = "0-63"});
  CHECK(brief(limited, "CPU time") == "warning: 3.5 CPUs, by the cgroup's limit");
  CHECK(contains(advice(limited, "CPU time"), "at 3 or less"));
  CHECK(contains(advice(limited, "SMT"), "at 32 or less"));
  CHECK(contains(advice(judge_cores({.online = 1, .usable = 1, .cpu_time = 0.001, .usable_list = "0"}), "CPU time"),
                 "at 1 or less"));
  CHECK(brief(judge_cores({}), "usable").starts_with("note: "));
}

TEST_CASE("memory: little, a cgroup's limit, nothing known") {
  CHECK(brief(judge_memory({16 * kGiB, kGiB / 2, {}, {}}), "available") == "warning: 512 MiB of 16.0 GiB");
  CHECK(brief(judge_memory({}), "available").starts_with("note: "));
  CHECK(brief(judge_memory({16 * kGiB, 8 * kGiB, 4 * kGiB, kGiB}), "cgroup limit") == "note: 4.00 GiB, 3.00 GiB left");
  CHECK(brief(judge_memory({16 * kGiB, 8 * kGiB, 4 * kGiB, 5 * kGiB}), "cgroup limit") ==
        "warning: 4.00 GiB, 0 B left");
  CHECK(brief(judge_memory({16 * kGiB, 8 * kGiB, 64 * kGiB, kGiB}), "cgroup limit") == "ok: none");
}

TEST_CASE("NUMA: several usable nodes are worth binding; one is not") {
  std::vector<NumaNode> nodes(2);
  nodes[0].cpus = "0-3";
  nodes[1].number = 1;
  nodes[0].usable = true;
  CHECK(brief(judge_numa(nodes), "node 0") == "ok: CPUs 0-3");
  CHECK(brief(judge_numa(nodes), "node 1") == "ok: no CPUs, not in the affinity mask");
  nodes[1].usable = true;
  CHECK(brief(judge_numa(nodes), "node 1").starts_with("note: "));
  CHECK(all_ok(judge_numa({})));
}

TEST_CASE("GPUs: none, a driver without its library, a GPU that is in use") {
  CHECK(brief(judge_gpus({}), "driver") == "note: no NVIDIA driver, no GPU");
  CHECK(brief(judge_gpus({true, "580.65", "", {}, "no device", false}), "driver") == "error: NVIDIA 580.65: no device");
  Gpus found{true, "", "13.0", {{"NVIDIA H200", "0000:1b:00.0", 100 * kGiB, 60 * kGiB}}, "", false};
  CHECK(brief(judge_gpus(found), "GPU 0") == "warning: NVIDIA H200, 100 GiB, 0000:1b:00.0; 60.0 GiB in use");
  found.list[0].in_use.reset();
  CHECK(brief(judge_gpus(found), "GPU 0").starts_with("note: "));
}

TEST_CASE("plugins: none, refused, hidden by another folder") {
  CHECK(brief(judge_plugins({}, {"/a", "/b"}), "plugins") == "warning: none in /a, /b");
  std::vector<Plugin> found = {{"comm", "x", "/a/x", "1", "lib 2", ""}, {"comm", "x", "/b/x", "1", "", ""}};
  CHECK(judge_plugins(found, {})[0].value == "1 (lib 2), /a/x");
  CHECK(judge_plugins(found, {})[1].state == State::note);
  CHECK(contains(judge_plugins(found, {})[1].advice, "/a/x comes first"));
  found[0].error = "wrong ABI";
  CHECK(judge_plugins(found, {})[0].state == State::error);
}

TEST_CASE("a launcher with contradicting variables is an error") {
  CHECK(brief(judge_launcher({"", "RANK = 2 contradicts"}), "launcher") == "error: RANK = 2 contradicts");
  CHECK(brief(judge_launcher({"torchrun: rank 0 of 2", ""}), "launcher") == "ok: torchrun: rank 0 of 2");
}

TEST_CASE("the table: groups once, advice below, control characters not, a count at the end") {
  const std::vector<Finding> findings = {{"limits", "a", State::ok, "1", ""},
                                         {"limits", "b", State::warning, "2\x1b[31m\n", "do this"},
                                         {"network", "c", State::error, "3", "and that"}};
  CHECK(table_text(findings) ==
        "group    what  state    finding\n"
        "limits   a     ok       1\n"
        "         b     warning  2?[31m?\n"
        "                        -> do this\n"
        "network  c     error    3\n"
        "                        -> and that\n"
        "1 error, 1 warning, 0 notes\n");
  CHECK(has_error(findings));
  CHECK_FALSE(has_error({findings[0], findings[1]}));
  CHECK(to_json(findings)[1]["state"] == "warning");
  CHECK(
      to_json({{"g", "n", State::ok, "\xff\xfe", ""}}).dump(0, ' ', false, nlohmann::json::error_handler_t::replace) !=
      "");
}
