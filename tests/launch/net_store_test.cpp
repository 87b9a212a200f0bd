#include "launch/net/net_store.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "ddprun/error.hpp"
#include "launch/net/connection.hpp"
#include "support/error_of.hpp"
#include "support/text.hpp"

namespace {

using namespace ddprun;
using namespace ddprun::launch;
using ddprun::testing::contains;
using ddprun::testing::error_of;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLimit{20000};

struct RunningServer {
  const Secret secret = make_secret();
  std::unique_ptr<StoreServer> server = store_server({"127.0.0.1", 0, secret});
  const StoreAddress address{"127.0.0.1", server->port(), secret};
  std::unique_ptr<Store> client() const { return net_store(address, kLimit); }
};

UniqueFd connect_to(int port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  return socket;
}

// True if the server closes the connection within five seconds.
bool is_closed_soon(int socket) {
  const timeval limit{5, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  char byte = 0;
  ssize_t got = 0;
  while ((got = ::recv(socket, &byte, 1, 0)) > 0) {
  }
  return got == 0 || errno == ECONNRESET;
}

TEST_CASE("a value is read by a client that asked before it was set, and by one that asks later") {
  const RunningServer running;
  const auto a = running.client(), b = running.client();
  std::string early;
  std::thread waiting([&] { early = b->require("key", kLimit); });
  std::this_thread::sleep_for(milliseconds(50));
  a->set("key", std::string("va\0lue", 6));
  waiting.join();
  CHECK(early == std::string("va\0lue", 6));
  CHECK(a->get("key", milliseconds(0)) == early);
  CHECK(contains(error_of([&] { b->set("key", "again"); }), "set already"));
}

TEST_CASE("a key that nobody sets is nothing to get; require reports it after the time, with exit code 4") {
  const RunningServer running;
  const auto client = running.client();
  const auto begin = Clock::now();
  const std::string error = error_of([&] { client->require("nobody's", milliseconds(200)); });
  CHECK(Clock::now() - begin >= milliseconds(200));
  CHECK(contains(error, "4: "));
  CHECK(contains(error, "nobody's"));
  CHECK_FALSE(client->get("nobody's", milliseconds(0)).has_value());
}

TEST_CASE("a key that is there is read also when the caller's time is over") {
  const RunningServer running;
  const auto client = running.client();
  client->set("key", "value");
  CHECK(client->get("key", -std::chrono::minutes(1)) == "value");
}

TEST_CASE("one thread sets a key while another waits through the same client") {
  const RunningServer running;
  const auto client = running.client();
  std::string found;
  std::thread waiting([&] { found = client->require("later", kLimit); });
  std::this_thread::sleep_for(milliseconds(50));
  client->set("later", "value");
  waiting.join();
  CHECK(found == "value");
}

TEST_CASE("a client that has lost the server says so with exit code 5, also when it is asked again") {
  RunningServer running;
  const auto client = running.client();
  running.server.reset();
  const std::string first = error_of([&] { client->require("key", kLimit); });
  CHECK_MESSAGE(first.starts_with("5: lost the store at 127.0.0.1:"), first);
  CHECK(error_of([&] { client->require("key", kLimit); }) == first);
  CHECK(error_of([&] { client->set("key", "value"); }) == first);
}

TEST_CASE("allgather names the ranks that did not come, and two processes of one rank") {
  const RunningServer running;
  const auto a = running.client(), b = running.client();
  const std::string missing = error_of([&] { a->allgather("meet", 1, 4, "x", milliseconds(150)); });
  CHECK(contains(missing, "4: "));
  CHECK(contains(missing, "did not come: 0, 2, 3"));
  const std::string twice = error_of([&] { b->allgather("meet", 1, 4, "y", kLimit); });
  CHECK(contains(twice, "the key \"meet/1\" is set already, by a process at 127.0.0.1"));
  CHECK(contains(twice, "is this rank there twice?"));
}

TEST_CASE("the values of an allgather may be longer together than one frame of a client") {
  const RunningServer running;
  const auto a = running.client(), b = running.client();
  const std::string value(kLongestFrame / 2 + 1, 'x');
  std::thread other([&] { b->allgather("long", 1, 2, value, kLimit); });
  const auto values = a->allgather("long", 0, 2, value, kLimit);
  other.join();
  CHECK(values == std::vector{value, value});
}

TEST_CASE("512 ranks meet") {
  constexpr int kRanks = 512;
  const RunningServer running;
  std::vector<std::thread> ranks;
  std::atomic<int> right{0};
  const auto begin = Clock::now();
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto client = running.client();
      const auto all = client->allgather("identity", rank, kRanks, std::string(32, static_cast<char>(rank)), kLimit);
      bool same = all.size() == kRanks;
      for (int peer = 0; same && peer < kRanks; ++peer) {
        same = all[static_cast<std::size_t>(peer)] == std::string(32, static_cast<char>(peer));
      }
      if (same) ++right;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  const auto time = std::chrono::duration<double>(Clock::now() - begin).count();
  CHECK(right == kRanks);
  MESSAGE("512 ranks connected, proved the secret and met in ", time * 1e3, " ms, ", time / kRanks * 1e6,
          " us per rank");
}

// The TCP sockets of this process that a program which it starts would inherit.
int sockets_for_children() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int socket = std::atoi(entry.path().filename().c_str());
    int protocol = 0;
    socklen_t size = sizeof protocol;
    const bool is_tcp = ::getsockopt(socket, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 && protocol == IPPROTO_TCP;
    if (is_tcp && (::fcntl(socket, F_GETFD) & FD_CLOEXEC) == 0) ++count;
  }
  return count;
}

TEST_CASE("programs that a process with the server or a client starts inherit none of its sockets") {
  const RunningServer running;
  const auto client = running.client();
  client->set("key", "value");  // so the server has accepted it
  CHECK(sockets_for_children() == 0);
}

TEST_CASE("a client with another secret, or none, is refused in one line") {
  const RunningServer running;
  const auto error_with = [&](const Secret& secret) {
    return error_of([&] { net_store({"127.0.0.1", running.server->port(), secret}, kLimit); });
  };
  const std::string wrong = error_with(make_secret());
  CHECK(contains(wrong, "4: "));
  CHECK(contains(wrong, "has another secret"));
  CHECK(contains(error_with(""), "asks for a secret"));
}

TEST_CASE("a server that does not prove the secret learns nothing from the client") {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  REQUIRE(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
  std::string sent;
  std::thread impostor([&] {
    const UniqueFd client(::accept(listener.get(), nullptr, nullptr));
    std::array<char, 1024> buffer{};
    ssize_t got = ::recv(client.get(), buffer.data(), buffer.size(), 0);
    sent.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    std::string answer(kHello);
    answer.append(kNonceBytes + kProofBytes, 'x');
    ::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    while ((got = ::recv(client.get(), buffer.data(), buffer.size(), 0)) > 0) {
      sent.append(buffer.data(), static_cast<std::size_t>(got));
    }
  });
  const std::string error = error_of([&] { net_store({"127.0.0.1", ntohs(address.sin_port), make_secret()}, kLimit); });
  impostor.join();
  CHECK(contains(error, "another secret"));
  CHECK(sent.size() == kFirstBytes);
}

TEST_CASE("a port in use is reported with the process that has it") {
  const RunningServer running;
  const std::string error = error_of([&] { store_server({"127.0.0.1", running.server->port(), make_secret()}); });
  CHECK(contains(error, "4: "));
  CHECK(contains(error, "in use by pid " + std::to_string(::getpid())));
}

TEST_CASE("a server that is not there is reported after the time") {
  const int port = RunningServer().server->port();
  const std::string error = error_of([&] { net_store({"127.0.0.1", port, make_secret()}, milliseconds(300)); });
  CHECK(contains(error, "4: "));
  CHECK(contains(error, "cannot reach the store at 127.0.0.1:" + std::to_string(port)));
  const std::string name = error_of([&] { net_store({"no-such-host.invalid", port, make_secret()}, kLimit); });
  CHECK(contains(name, "\"no-such-host.invalid\" cannot be resolved"));
}

TEST_CASE("a client may start before the server") {
  const int port = RunningServer().server->port();
  const Secret secret = make_secret();
  std::string value;
  std::thread early([&] { value = net_store({"127.0.0.1", port, secret}, kLimit)->require("key", kLimit); });
  std::this_thread::sleep_for(milliseconds(100));
  {
    const auto server = store_server({"127.0.0.1", port, secret});
    net_store({"127.0.0.1", port, secret}, kLimit)->set("key", "value");
    early.join();
  }
  CHECK(value == "value");
}

// The memory of this process that is in use, server and clients together.
int64_t resident_kib() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmRSS:")) return std::atoll(line.c_str() + 6);
  }
  return 0;
}

TEST_CASE("garbage, half a greeting and 400 idle connections disturb nobody") {
  const RunningServer running;
  const auto client = running.client();
  const int64_t memory = resident_kib();
  std::vector<UniqueFd> idle;
  for (int count = 0; count < 400; ++count) idle.push_back(connect_to(running.server->port()));
  const UniqueFd half = connect_to(running.server->port());
  ::send(half.get(), kHello.data(), kHello.size(), MSG_NOSIGNAL);
  const UniqueFd garbage = connect_to(running.server->port());
  const std::string bytes(4096, '\xff');
  ::send(garbage.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);

  milliseconds slowest{0};
  for (int key = 0; key < 20; ++key) {
    const auto begin = Clock::now();
    client->set(std::to_string(key), "value");
    slowest = std::max(slowest, std::chrono::duration_cast<milliseconds>(Clock::now() - begin));
  }
  const int64_t growth = resident_kib() - memory;
  MESSAGE("the slowest operation of a rank: ", slowest.count(), " ms; the process has grown by ", growth, " KiB");
  CHECK(growth <= 8 * 1024);
  CHECK(running.client()->get("19", kLimit) == "value");  // a new rank comes in too
  CHECK(is_closed_soon(garbage.get()));
  CHECK(is_closed_soon(half.get()));
  CHECK(is_closed_soon(idle.back().get()));
}

TEST_CASE("a frame of a client that has no meaning ends its connection, and no other") {
  const RunningServer running;
  const auto client = running.client();
  const uint64_t lengths[] = {0, 1, ~uint64_t{0}};
  for (const uint64_t length : lengths) {
    Connection bad(running.address, Clock::now() + kLimit);
    bad.send(ByteWriter().number(Request::exchange).number(0).number(1).number(length));
    CHECK(error_of([&] { bad.receive(Clock::now() + kLimit); }).starts_with("5: "));
  }
  const UniqueFd raw = connect_to(running.server->port());
  client->set("key", "value");
  CHECK(client->get("key", kLimit) == "value");
}

}  // namespace
