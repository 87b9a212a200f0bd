#include "launch/net/hub.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "launch/net/protocol.hpp"

namespace {

using namespace ddprun::launch;
using namespace std::chrono_literals;

class Client : public HubClient {
 public:
  void send(std::shared_ptr<const std::string> frame) override { frames.push_back(frame->substr(kHeaderBytes)); }
  void close() override { closed = true; }
  std::string address() const override { return "10.0.0.2"; }

  std::vector<std::string> frames;  // without their headers
  bool closed = false;
};

// Two nodes that have joined.
struct Joined {
  explicit Joined(bool survives = false) : survives(survives) {
    for (uint64_t node = 0; node < 2; ++node) {
      hub.handle(clients[node], ByteWriter().number(Request::join).number(node).number(2).number(1000).text("").bytes(),
                 now);
    }
  }
  // For `duration`, one node alone sends pings.
  void only_pings_from(std::size_t node, Hub::Clock::duration duration) {
    for (const auto end = now + duration; now < end; now += 50ms) {
      hub.handle(clients[node], ByteWriter().number(Request::ping).bytes(), now);
      hub.sweep(now);
    }
  }

  const bool survives;
  Hub hub{survives};
  std::vector<std::shared_ptr<Client>> clients{std::make_shared<Client>(), std::make_shared<Client>()};
  Hub::Clock::time_point now = Hub::Clock::now();
};

TEST_CASE("a node that is silent is lost, the one that is not stays") {
  Joined joined;
  joined.only_pings_from(0, Hub::kSilence + 100ms);
  CHECK(joined.clients[1]->closed);
  CHECK_FALSE(joined.clients[0]->closed);
  const auto is_loss = [](const std::string& frame) {
    return frame == ByteWriter().number(Reply::lost).number(1).number(1).bytes();
  };
  CHECK(std::any_of(joined.clients[0]->frames.begin(), joined.clients[0]->frames.end(), is_loss));
}

TEST_CASE("a pause of the server, with its machine, is no silence of the nodes") {
  Joined joined;
  joined.only_pings_from(0, 500ms);
  joined.now += 60s;
  joined.hub.sweep(joined.now);  // before it has read the pings that wait
  CHECK_FALSE(joined.clients[0]->closed);
  CHECK_FALSE(joined.clients[1]->closed);
  joined.only_pings_from(0, Hub::kSilence - 600ms);
  CHECK_FALSE(joined.clients[1]->closed);
  joined.only_pings_from(0, 300ms);  // the silence before the pause and the one after it are counted
  CHECK(joined.clients[1]->closed);
}

TEST_CASE("a client that joins as two nodes is refused") {
  Joined joined;
  const auto join = [](uint64_t node) {
    return ByteWriter().number(Request::join).number(node).number(2).number(1000).text("");
  };
  CHECK_THROWS_AS(joined.hub.handle(joined.clients[0], join(0).bytes(), joined.now), std::out_of_range);
  CHECK_THROWS_AS(joined.hub.handle(joined.clients[0], join(1).bytes(), joined.now), std::out_of_range);
  Hub hub;
  const auto client = std::make_shared<Client>();
  hub.handle(client, join(0).bytes(), joined.now);
  CHECK_THROWS_AS(hub.handle(client, join(1).bytes(), joined.now), std::out_of_range);
}

std::string wants(const std::string& key, uint64_t milliseconds) {
  return ByteWriter().number(Request::exchange).number(milliseconds).number(0).text(key).bytes();
}

TEST_CASE("a request that does not wait is answered at once") {
  Joined joined;
  const auto client = std::make_shared<Client>();
  joined.hub.handle(client, wants("key", 0), joined.now);
  REQUIRE(client->frames.size() == 1);
  CHECK(client->frames[0] == ByteWriter().number(Reply::late).number(0).bytes());
  joined.hub.handle(client, wants("key", 1), joined.now);
  CHECK(client->frames.size() == 1);
}

TEST_CASE("a lost node ends the requests that wait, unless the job survives it") {
  for (const bool survives : {false, true}) {
    Joined joined(survives);
    const auto client = std::make_shared<Client>();
    joined.hub.handle(client, wants("key", 1000), joined.now);
    joined.hub.leave(joined.clients[1]);
    CHECK(client->frames.size() == (survives ? 0 : 1));
  }
}

TEST_CASE("in a job that survives, a node that comes back before it is lost waits until it is") {
  Joined joined(true);
  const auto again = std::make_shared<Client>();
  const std::string join = ByteWriter().number(Request::join).number(1).number(2).number(60000).text("").bytes();
  joined.hub.handle(again, join, joined.now);
  CHECK(again->frames.empty());
  joined.only_pings_from(0, Hub::kSilence + 100ms);
  REQUIRE_FALSE(again->frames.empty());
  CHECK(again->frames.front() == ByteWriter().number(Reply::started).number(0).number(1).text("").text("").bytes());
}

}  // namespace
