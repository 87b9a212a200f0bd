// The address on which a rank listens.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "plugins/comm_gloo/address.hpp"
#include "plugins/comm_gloo/choice.hpp"
#include "support/error_of.hpp"
#include "support/variable.hpp"

namespace ddprun::gloo_backend {
namespace {

using testing::error_of;
using testing::Variable;

const std::vector<NetworkInterface> kInterfaces = {{"lo", true, true, {"127.0.0.1", "::1"}},
                                                   {"eth0", true, false, {"10.0.0.7", "fd00::7"}},
                                                   {"ib0", true, false, {"fd01::7"}},
                                                   {"eth1", false, false, {"10.1.0.7"}},
                                                   {"tun0", true, false, {}}};
constexpr char kTheyAre[] =
    "; this host has lo (127.0.0.1), eth0 (10.0.0.7), ib0 (fd01::7), eth1 (down), tun0 (no address)";

// What a rank listens on, or the error. variable: GLOO_SOCKET_IFNAME.
std::string listens_on(bool one_network, const char* address, const char* option = nullptr,
                       const std::optional<std::string>& variable = {},
                       const std::vector<NetworkInterface>& interfaces = kInterfaces) {
  const Variable environment("GLOO_SOCKET_IFNAME", variable);
  const ddprun_comm_option interface = {"interface", option};
  ddprun_comm_host host = {};
  host.struct_size = sizeof host;
  host.algorithm = "auto";
  host.address = address;
  host.options = &interface;
  host.option_count = option != nullptr ? 1 : 0;
  std::string found;
  const std::string error =
      error_of([&] { found = listening_address(Host(host, {}, {}, kOptions), one_network, interfaces); });
  return found.empty() ? error : found;
}

TEST_CASE("in one network namespace the ranks stay on 127.0.0.1, unless the config names an interface") {
  CHECK(listens_on(true, "") == "127.0.0.1");
  CHECK(listens_on(true, "10.0.0.7", nullptr, "eth0") == "127.0.0.1");
  CHECK(listens_on(true, "", "eth0") == "10.0.0.7");
}

TEST_CASE("without 127.0.0.1 the ranks of one host are refused in one line, which names backends that do not need it") {
  const std::string before = "3: the ranks of one host connect at 127.0.0.1, which is missing: this host has ";
  const std::string after = "; run `ip link set lo up`, or use shm or ucx, which do not need it";
  const NetworkInterface eth0 = {"eth0", true, false, {"10.0.0.7"}};
  CHECK(listens_on(true, "", nullptr, {}, {{"lo", false, true, {}}, eth0}) ==
        before + "lo (down), eth0 (10.0.0.7)" + after);
  CHECK(listens_on(true, "", nullptr, {}, {{"lo", false, true, {"127.0.0.1"}}}) == before + "lo (down)" + after);
  CHECK(listens_on(true, "", nullptr, {}, {{"lo", true, true, {"::1"}}}) == before + "lo (::1)" + after);
  CHECK(listens_on(true, "", "eth0", {}, {{"lo", true, true, {}}, eth0}) == "10.0.0.7");
  CHECK(listens_on(true, "", nullptr, {}, {}) == "127.0.0.1");  // the kernel reports no interface
}

TEST_CASE("a rank of another host that listens on an address of this host is refused") {
  CHECK(error_of([] { require_elsewhere(1, "10.0.0.8", kInterfaces); }) == "no error");
  CHECK(error_of([] { require_elsewhere(1, "10.0.0.7", kInterfaces); }) ==
        "3: rank 1 is on another host and listens on 10.0.0.7 (eth0), which is an address of this host too; name an "
        "interface that leads to the other hosts in GLOO_SOCKET_IFNAME, or with --set comm.options.interface=NAME");
}

TEST_CASE("between hosts the config goes before GLOO_SOCKET_IFNAME, and that before the route") {
  CHECK(listens_on(false, "10.0.0.7") == "10.0.0.7");
  CHECK(listens_on(false, "10.0.0.7", nullptr, "") == "10.0.0.7");
  CHECK(listens_on(false, "10.0.0.7", nullptr, "ib0") == "fd01::7");
  CHECK(listens_on(false, "10.0.0.7", "lo", "ib0") == "127.0.0.1");
}

TEST_CASE("of a named interface with several addresses, the one that the hosts reach is used") {
  CHECK(listens_on(false, "fd00::7", "eth0") == "fd00::7");
  CHECK(listens_on(false, "10.9.9.9", "eth0") == "10.0.0.7");
}

TEST_CASE("an interface that cannot be used is named, with what names it, and with those that exist") {
  CHECK(listens_on(false, "10.0.0.7", "eth7") ==
        std::string("3: comm.options.interface = \"eth7\": there is no such interface") + kTheyAre);
  CHECK(listens_on(true, "", "eth1") ==
        std::string("3: comm.options.interface = \"eth1\": this interface is down") + kTheyAre);
  CHECK(listens_on(false, "10.0.0.7", nullptr, "tun0") ==
        std::string("3: GLOO_SOCKET_IFNAME = \"tun0\": this interface has no address") + kTheyAre);
}

TEST_CASE("between hosts, a rank without a known address asks for an interface") {
  CHECK(
      listens_on(false, "") ==
      "3: the ranks are on several hosts, and it is not known through which interface the others reach this one; this "
      "host has lo (127.0.0.1), eth0 (10.0.0.7), ib0 (fd01::7), eth1 (down), tun0 (no address); name an "
      "interface that leads to the other hosts in GLOO_SOCKET_IFNAME, or with --set comm.options.interface=NAME");
}

}  // namespace
}  // namespace ddprun::gloo_backend
