#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "launch/text.hpp"
#include "launch/unique_fd.hpp"
#include "support/process.hpp"

namespace {

using namespace ddprun::testing;
using namespace ddprun::launch::testing;
using ddprun::launch::UniqueFd;

// A port of the loopback that nobody has at this moment.
int free_port() {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(bind(listener.get(), generic, length) == 0);
  REQUIRE(getsockname(listener.get(), generic, &length) == 0);
  return ntohs(address.sin_port);
}

std::vector<std::string> place(int rank, int size, int port) {
  const std::string number = std::to_string(rank), ranks = std::to_string(size);
  return {"RANK=" + number,        "WORLD_SIZE=" + ranks,
          "LOCAL_RANK=" + number,  "LOCAL_WORLD_SIZE=" + ranks,
          "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(port)};
}

TEST_CASE("where no agent hosts the store rank 0 does, and the ranks meet") {
  const int port = free_port();
  std::vector<std::unique_ptr<Process>> ranks;
  for (int rank = 2; rank >= 0; --rank) {
    ranks.push_back(std::make_unique<Process>(std::vector<std::string>{C10D_RANK, "meet"}, place(rank, 3, port)));
  }
  for (auto& rank : ranks) {
    const auto result = rank->wait(std::chrono::seconds(60));
    CHECK_MESSAGE(result.code == 0, result.err);
    CHECK(contains(result.err, "nobody's"));
  }
}

TEST_CASE("a store that cannot be reached is told with its address, and ends with 4") {
  const int port = free_port();
  Process rank({C10D_RANK, "alone"}, place(1, 2, port));
  const auto result = rank.wait(std::chrono::seconds(60));
  CHECK(result.code == 4);
  CHECK(contains(result.err, "cannot reach"));
  CHECK(contains(result.err, "127.0.0.1:" + std::to_string(port)));
  MESSAGE("gave up after ", result.elapsed.count(), " ms; its limit was 1000");
}

}  // namespace
