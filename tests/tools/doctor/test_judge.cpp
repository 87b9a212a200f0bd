// Findings: pure functions, with ordinary and hostile values.
#include <doctest/doctest.h>

#include <climits>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>

#include "support/golden.hpp"
#include "tools/doctor/rules.hpp"

using namespace ddprun;
using namespace ddprun::doctor;

namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

Interface interface(const std::string& name, const std::vector<std::string>& addresses, int64_t mtu = 1500) {
  Interface made;
  made.name = name;
  made.is_up = true;
  made.is_loopback = name == "lo";
  made.addresses = addresses;
  made.mtu = mtu;
  return made;
}

// A host with nothing to correct.
Facts ordinary() {
  Facts made;
  made.plugins = {{"comm", "x", "/a/x", "1", "lib 2", ""}};
  made.cores = {.online = 8, .usable = 8, .usable_list = "0-7"};
  made.memory = {16 * kGiB, 8 * kGiB};
  made.group = {8.0, 64 * kGiB, kGiB, {}};
  made.numa.resize(1);
  made.numa[0].cpus = "0-7";
  made.numa[0].usable = true;
  made.gpus = {true, "580.65.06", "13.0", {{"NVIDIA H200", "0000:1b:00.0", 140 * kGiB, kGiB}}, "", false};
  made.network.interfaces = {interface("lo", {"127.0.0.1"}, 65536), interface("eth0", {"10.0.0.3", "fd00::3"})};
  made.network.interfaces[1].default_route = true;
  made.network.host = {"node3", {"127.0.1.1", "10.0.0.3"}, ""};
  made.network.rdma_devices = {"mlx5_0"};
  made.limits = {Limit(), Limit(65536), Limit(), {"/dev/shm", 8 * kGiB, 8 * kGiB, ""}, {"/tmp", kGiB, kGiB, ""}};
  made.launcher = {"torchrun: rank 0 of 2", ""};
  return made;
}

std::string line(const Finding& one) {
  CHECK((one.state == State::ok) == one.advice.empty());
  const std::string advice = one.advice.empty() ? "" : "\n  -> " + one.advice;
  return std::string(name_of(one.state)) + ": " + one.group + ", " + one.name + ": " + one.value + advice + "\n";
}

struct Case {
  const char* name;
  std::function<void(Facts&)> change;
};

const std::vector<Case> kCases = {
    {"nothing is known",
     [](Facts& facts) {
       facts = {};
       facts.plugin_folders = {"/a", "/b"};
     }},
    {"a small container without RDMA",
     [](Facts& facts) {
       facts.network.rdma_devices.clear();
       facts.cores = {.online = 8, .usable = 2, .usable_list = "0,4"};
       facts.memory = {16 * kGiB, kGiB / 2};
       facts.group = {0.001, 4 * kGiB, 5 * kGiB, 64};
       facts.limits.memlock = Limit(65536);
       facts.limits.files = Limit(1024);
       facts.limits.shm.size = facts.limits.shm.free = 64 << 20;
       facts.limits.job_folder.free = 0;
       facts.gpus.hidden = true;
     }},
    {"a large host with limits",
     [](Facts& facts) {
       facts.cores = {.online = 64, .usable = 64, .threads_per_core = 2, .usable_list = "0-63"};
       facts.memory = {16 * kGiB, 8 * kGiB};
       facts.group = {3.5, 4 * kGiB, kGiB, {}};
       facts.numa = {{0, "0-31", 8 * kGiB, true}, {1, "32-63", {}, true}, {2, "", {}, false}};
       facts.limits.memlock = Limit(65536);
       facts.limits.files = Limit(0);
       facts.limits.processes = Limit(100);
       facts.limits.shm.free = 0;
       facts.gpus.list[0].in_use = 60 * kGiB;
     }},
    {"files that cannot be written, a driver that fails, plugins that are hidden or refused",
     [](Facts& facts) {
       facts.limits = {{}, Limit(UINT64_MAX), {}, {"/dev/shm", 0, 0, "No such file or directory"}, {}};
       facts.limits.job_folder = {"/tmp", kGiB, kGiB, "Read-only file system"};
       facts.gpus = {true, "580.65", "", {}, "no device", false};
       facts.plugins.push_back({"comm", "x", "/b/x", "1", "", ""});
       facts.plugins.push_back({"model", "y", "/b/y", "1", "", "wrong ABI"});
       facts.launcher = {"", "RANK = 2 contradicts"};
     }},
    {"NVML is missing, the name is that of another host, the link is slow, the MTU small",
     [](Facts& facts) {
       facts.gpus.list[0].in_use.reset();
       facts.network.host.addresses = {"10.9.9.9"};
       facts.network.interfaces[1].speed = 100;
       facts.network.interfaces.push_back(interface("tun0", {"10.8.0.3"}, 1000));
     }},
    {"no default route, a name that means loopback",
     [](Facts& facts) {
       facts.network.interfaces[1].default_route = false;
       facts.network.host.addresses = {"127.0.1.1"};
     }},
    {"all interfaces are down, a name that does not resolve", [](Facts& facts) {
       for (Interface& one : facts.network.interfaces) one.is_up = false;
       facts.network.host = {"node3", {}, "Name or service not known"};
       CHECK(main_interface(facts.network.interfaces) == nullptr);
     }}};

std::vector<Finding> of_group(const std::string& group, const Facts& facts) {
  auto findings = judge(facts);
  std::erase_if(findings, [&](const Finding& one) { return one.group != group; });
  return findings;
}

State state_of(const std::string& name, const std::string& value, Facts facts) {
  facts.variables = {{name, value}};
  const auto findings = of_group("variables", facts);
  REQUIRE(findings.size() == 1);
  return findings[0].state;
}

}  // namespace

TEST_CASE("all that the doctor says about hosts") {
  std::string text = "# an ordinary host\n";
  for (const Finding& one : judge(ordinary())) {
    CHECK(one.state == State::ok);
    text += line(one);
  }
  for (const Case& each : kCases) {
    Facts facts = ordinary();
    each.change(facts);
    text += std::string("\n# ") + each.name + "\n";
    for (const Finding& one : judge(facts)) text += one.state == State::ok ? "" : line(one);
  }
  text += "\n# variables\n";
  Facts facts = ordinary();
  facts.network.master = Resolved{"localhost", {"127.0.0.1", "::1"}, ""};
  facts.variables = {{"GLOO_SOCKET_IFNAME", "eth9"},  {"MASTER_ADDR", "localhost"},
                     {"MASTER_PORT", "port"},         {"NCCL_IB_DISABLE", "1"},
                     {"NCCL_SOCKET_IFNAME", "ib,en"}, {"OMP_NUM_THREADS", "9"},
                     {"UCX_NET_DEVICES", "mlx5_7:1"}, {"UCX_TLS", "tcp"}};
  for (const Finding& one : of_group("variables", facts)) text += line(one);
  facts.network.master = Resolved{"nowhere", {}, "Name or service not known"};
  facts.variables = {{"MASTER_ADDR", "nowhere"}, {"OMP_NUM_THREADS", "all"}};
  for (const Finding& one : of_group("variables", facts)) text += line(one);
  text += "\n# NUMA nodes of a host where one can be used\n";
  facts.numa = {{0, "0-3", {}, true}, {1, "", {}, false}};
  for (const Finding& one : of_group("NUMA", facts)) text += line(one);
  testing::check_golden("tools/doctor/findings.txt", text);
}

TEST_CASE("variables that name interfaces, as their libraries read them") {
  const Facts facts = ordinary();
  const auto is_ok = [&](const std::string& name, const std::string& value) {
    return state_of(name, value, facts) == State::ok;
  };
  CHECK(is_ok("GLOO_SOCKET_IFNAME", "eth0"));
  CHECK_FALSE(is_ok("GLOO_SOCKET_IFNAME", "eth"));
  CHECK(is_ok("NCCL_SOCKET_IFNAME", "eth"));
  CHECK_FALSE(is_ok("NCCL_SOCKET_IFNAME", "=eth"));
  CHECK(is_ok("NCCL_SOCKET_IFNAME", "^docker,lo"));
  CHECK(is_ok("UCX_NET_DEVICES", "mlx5_0:1,eth0"));
  CHECK(is_ok("UCX_NET_DEVICES", "all"));
  for (const char* odd : {"", ",", "^", "=", "^=", ":", ",,:,"}) {
    for (const char* name : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "UCX_NET_DEVICES"}) is_ok(name, odd);
  }
  Facts nothing;
  nothing.variables = {{"GLOO_SOCKET_IFNAME", "x"}};
  CHECK(of_group("variables", nothing)[0].advice == "unset it; no interface is up");
}

TEST_CASE("numbers in variables") {
  const Facts facts = ordinary();
  for (const char* bad : {"0", "65536", "-1", "port", "", "29500x", "99999999999999999999"}) {
    CAPTURE(bad);
    CHECK(state_of("MASTER_PORT", bad, facts) == State::error);
  }
  CHECK(state_of("MASTER_PORT", "29500", facts) == State::ok);
  CHECK(state_of("MASTER_ADDR", "node0", facts) == State::ok);
  CHECK(state_of("OMP_NUM_THREADS", "1", facts) == State::ok);
  CHECK(state_of("OMP_NUM_THREADS", "4,2", facts) == State::ok);
  Facts without_rdma = facts;
  without_rdma.network.rdma_devices.clear();
  CHECK(state_of("NCCL_IB_DISABLE", "1", without_rdma) == State::ok);
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
