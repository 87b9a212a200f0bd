#include "launch/net/node_link.hpp"

#include <algorithm>

#include "ddprun/error.hpp"
#include "launch/net/hub.hpp"
#include "launch/net/protocol.hpp"

namespace ddprun::launch {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPing{250};

}  // namespace

NodeLink::NodeLink(const StoreAddress& address, int node, int nodes, const std::string& info, milliseconds timeout)
    : connection_(address, Clock::now() + timeout) {
  connection_.send(request(Request::join)
                       .number(static_cast<uint64_t>(node))
                       .number(static_cast<uint64_t>(nodes))
                       .number(static_cast<uint64_t>(timeout.count()))
                       .text(info));
  const std::string payload = connection_.receive(Clock::now() + timeout + kAnswer);
  ByteReader reader(payload);
  const auto reply = static_cast<Reply>(reader.number());
  if (reply == Reply::late) {
    std::string missing;
    while (!reader.empty()) missing += (missing.empty() ? "" : ", ") + std::to_string(reader.number());
    throw Error(ExitCode::rendezvous, "waited " + std::to_string(timeout.count()) + " ms for all " +
                                          std::to_string(nodes) + " nodes; these --node-rank did not come: " + missing);
  }
  if (reply != Reply::started) throw Error(ExitCode::rendezvous, reader.text());
  starts_ = static_cast<int>(reader.number());
  while (!reader.empty()) infos_.push_back(reader.text());
  heard_ = looked_ = Clock::now();
}

void NodeLink::publish(const std::string& text) try {
  if (open_) connection_.send(request(Request::event).text(text));
} catch (const Error&) {
  // events() reports it.
}

void NodeLink::report(const std::string& text) try {
  if (open_) connection_.send(request(Request::report).text(text));
} catch (const Error&) {
  // events() reports it.
}

std::vector<NodeEvent> NodeLink::events() {
  std::vector<NodeEvent> events;
  if (!open_) return events;
  bool silent = false;
  try {
    std::string payload;
    while (connection_.poll(payload)) {
      heard_ = Clock::now();
      ByteReader reader(payload);
      const auto reply = static_cast<Reply>(reader.number());
      if (reply != Reply::event && reply != Reply::lost) continue;
      const auto node = static_cast<int>(reader.number());
      if (reply == Reply::lost) {
        events.push_back({node, true, reader.number() != 0, ""});
      } else {
        events.push_back({node, false, false, reader.text()});
      }
    }
    const auto now = Clock::now();
    // If this process was paused, perhaps with the server, that time does not count as silence of the server.
    if (now - looked_ > kPing + Hub::kPause) heard_ = std::min(now, heard_ + (now - looked_));
    looked_ = now;
    silent = now - heard_ > Hub::kSilence;
    if (!silent) return events;
  } catch (const std::exception&) {
    // The server's connection has ended.
  }
  if (silent) say_silence();
  open_ = false;
  events.push_back({0, true, silent, ""});
  return events;
}

NodeLink::Clock::time_point NodeLink::keep_alive() {
  const auto now = Clock::now();
  if (now >= next_ping_ && open_) {
    next_ping_ = now + kPing;
    try {
      connection_.send(request(Request::ping));
    } catch (const Error&) {
      // events() reports it.
    }
  }
  return std::min(next_ping_, heard_ + Hub::kSilence + milliseconds(1));
}

// The network may still carry messages in the other direction. The server then need not wait for the silence of this
// node, and its node ends as early.
void NodeLink::say_silence() try { connection_.send(request(Request::silence)); } catch (const Error&) {
  // The connection has ended meanwhile.
}

void NodeLink::leave() {
  if (!open_) return;
  open_ = false;
  try {
    connection_.send(request(Request::leave));
  } catch (const Error&) {
    // The server is gone.
  }
}

void NodeLink::disconnect() {
  open_ = false;
  connection_.close();
}

}  // namespace ddprun::launch
