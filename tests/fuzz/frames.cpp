// The rendezvous: what the store's server does with the frames of clients that know the secret, and how a client reads
// the answer and the frames of a server.
#include "fuzz/target.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>

#include "launch/net/hub.hpp"
#include "launch/net/protocol.hpp"

using namespace ddprun;
using namespace ddprun::launch;
using std::chrono::milliseconds;

namespace {

class Client final : public HubClient {
 public:
  void send(std::shared_ptr<const std::string> frame) override {
    fuzz::require(open, "a client that has left gets nothing");
    std::string received = *frame, payload;
    fuzz::require(take_frame(received, payload) && received.empty() && payload.size() >= 8, "a reply is a frame");
    const auto kind = ByteReader(payload).number();
    fuzz::require(kind <= static_cast<uint64_t>(Reply::pong), "a reply has a known kind");
  }
  void close() override { open = false; }
  std::string address() const override { return "10.0.0.2"; }

  bool open = true;
};

// A client reads what a server answers, in pieces.
void read_as_client(std::string_view input) {
  Greeting greeting(Greeting::Side::client, "secret", std::string(kNonceBytes, 'c'));
  std::string received, reply;
  auto result = Greeting::Result::incomplete;
  while (result == Greeting::Result::incomplete && !input.empty()) {
    received += input.substr(0, 7);
    input.remove_prefix(std::min<std::size_t>(7, input.size()));
    result = greeting.step(received, reply);
  }
  if (result != Greeting::Result::complete) return;
  received += input;
  const std::string all = received;
  std::string again, payload;
  while (take_frame(received, payload)) again += frame(payload);
  fuzz::require(again + received == all, "frames are read in order and completely");
}

// The input is a sequence of steps. The first byte of a step chooses a client, and whether the client sends a frame
// (whose length is the second byte), its connection ends, or time passes (100 ms times the second byte).
void serve(std::string_view input) {
  enum : uint8_t { kEnd = 6, kTime = 7 };
  Hub hub;
  std::array<std::shared_ptr<Client>, 4> clients;
  auto now = Hub::Clock::now();
  const auto leave = [&](std::shared_ptr<Client>& client) {
    client->open = false;
    hub.leave(client);
    client.reset();
  };
  while (input.size() >= 2) {
    const auto step = static_cast<uint8_t>(input[0]), value = static_cast<uint8_t>(input[1]);
    input.remove_prefix(2);
    auto& client = clients[step % clients.size()];
    if (!client) client = std::make_shared<Client>();
    const uint8_t action = step / clients.size() % 8;
    if (action == kTime) {
      now += milliseconds(100) * value;
      hub.sweep(now);
    } else if (action == kEnd) {
      leave(client);
    } else {
      const std::string_view frame = input.substr(0, value);
      input.remove_prefix(frame.size());
      try {
        hub.handle(client, frame, now);
      } catch (const std::out_of_range&) {
        leave(client);  // as the server does
      }
    }
    for (auto& each : clients) {
      if (each && !each->open) leave(each);
    }
  }
}

}  // namespace

// What a client sends, or if the input begins with the server's greeting, what a server sends.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  input.starts_with(kHello.substr(0, 4)) ? read_as_client(input) : serve(input);
  return 0;
}
