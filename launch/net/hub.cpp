#include "launch/net/hub.hpp"

#include <algorithm>

#include "launch/net/bytes.hpp"
#include "launch/net/protocol.hpp"

namespace ddprun::launch {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kLargestJob = 1 << 16;
constexpr uint64_t kMostMilliseconds = uint64_t{1} << 40;

std::shared_ptr<const std::string> shared_frame(const ByteWriter& payload) {
  return std::make_shared<const std::string>(frame(payload.bytes()));
}

ByteWriter reply(Reply kind) {
  ByteWriter writer;
  writer.number(static_cast<uint64_t>(kind));
  return writer;
}

void refuse(const Hub::ClientPtr& client, const std::string& reason) {
  client->send(shared_frame(reply(Reply::refused).text(reason)));
}

}  // namespace

void Hub::handle(const ClientPtr& client, std::string_view bytes, Clock::time_point now) {
  ByteReader reader(bytes);
  const auto deadline = [&] { return now + milliseconds(std::min(reader.number(), kMostMilliseconds)); };
  switch (static_cast<Request>(reader.number())) {
    case Request::exchange: return exchange({client, deadline(), {}}, reader);
    case Request::join: {
      const uint64_t node = reader.number(), nodes = reader.number();
      const auto until = deadline();
      return join(client, node, nodes, reader.text(), until, now);
    }
    case Request::event: return pass_on(client, reader.text(), false);
    case Request::report: return pass_on(client, reader.text(), true);
    case Request::leave:
      broken_ = true;
      std::erase_if(joined_, [&](const auto& entry) { return entry.second.client == client; });
      return;
    case Request::silence: lose(client, true); return client->close();
    case Request::ping:
      if (const auto node = node_of(client)) joined_.at(*node).time = now;
      return client->send(shared_frame(reply(Reply::pong)));
  }
  throw std::out_of_range("an unknown request");
}

void Hub::exchange(Waiter waiter, ByteReader& reader) {
  const ClientPtr client = waiter.client;
  std::optional<std::pair<std::string, std::string>> set;
  if (reader.number() != 0) {
    std::string key = reader.text();
    set.emplace(std::move(key), reader.text());
  }
  while (!reader.empty()) waiter.keys.push_back(reader.text());
  waiters_.push_back(std::move(waiter));
  if (set) {
    const auto [value, is_new] = values_.try_emplace(set->first, Value{std::move(set->second), client->address()});
    if (!is_new) {
      waiters_.pop_back();
      return refuse(client, "store: the key \"" + set->first + "\" is set already, by a process at " +
                                value->second.address + "; each is set once per job: is this rank there twice?");
    }
  }
  answer();
}

// Answers requests whose keys are all set. Most of those that a new key completes want the same keys.
void Hub::answer() {
  std::shared_ptr<const std::string> values;
  std::vector<std::string> keys;
  for (Waiter& waiter : waiters_) {
    while (waiter.there < waiter.keys.size() && values_.count(waiter.keys[waiter.there]) > 0) ++waiter.there;
    if (waiter.there < waiter.keys.size()) continue;
    if (!values || waiter.keys != keys) {
      ByteWriter writer = reply(Reply::values);
      for (const std::string& key : waiter.keys) writer.text(values_.at(key).text);
      values = shared_frame(writer);
      keys = waiter.keys;
    }
    waiter.client->send(values);
  }
  std::erase_if(waiters_, [](const Waiter& waiter) { return waiter.there == waiter.keys.size(); });
}

std::optional<uint64_t> Hub::node_of(const ClientPtr& client) const {
  for (const auto& [rank, node] : joined_) {
    if (node.client == client) return rank;
  }
  return std::nullopt;
}

void Hub::join(const ClientPtr& client, uint64_t node, uint64_t nodes, std::string info, Clock::time_point deadline,
               Clock::time_point now) {
  if (nodes == 0 || nodes > kLargestJob || node >= nodes) throw std::out_of_range("a node outside the job");
  const auto is_same = [&](const auto& entry) { return entry.second.client == client; };
  if (node_of(client) || std::any_of(joining_.begin(), joining_.end(), is_same)) {
    throw std::out_of_range("a client joins twice");  // it would be two nodes
  }
  if (nodes_ == 0) nodes_ = nodes;
  if (nodes != nodes_) {
    return refuse(client, "this node has --nnodes " + std::to_string(nodes) + ", and the first has " +
                              std::to_string(nodes_) + ": give all nodes the same number");
  }
  if (const auto same = joining_.find(node); same != joining_.end()) {
    return refuse_second(client, node, same->second);
  }
  // A node that was lost may come back before its old connection has ended.
  if (is_running(node)) deadline = std::min(deadline, now + 2 * kSilence);
  joining_[node] = {client, std::move(info), deadline};
  if (joining_.size() == nodes_) start(now);
}

bool Hub::is_running(uint64_t node) const {
  return !broken_ && joined_.count(node) > 0;
}

void Hub::refuse_second(const ClientPtr& client, uint64_t node, const Node& first) {
  refuse(client, "two nodes have --node-rank " + std::to_string(node) + ", at " + first.client->address() + " and " +
                     client->address() + ": give each node its own rank");
}

void Hub::start(Clock::time_point now) {
  values_.clear();
  waiters_.clear();
  joined_ = std::move(joining_);
  joining_.clear();
  broken_ = false;
  ByteWriter writer = reply(Reply::started);
  writer.number(starts_++);
  for (auto& [rank, node] : joined_) {
    node.time = now;
    writer.text(node.info);
  }
  const auto started = shared_frame(writer);
  for (const auto& [rank, node] : joined_) node.client->send(started);
}

void Hub::pass_on(const ClientPtr& client, const std::string& text, bool only_node0) {
  const auto from = node_of(client);
  if (!from) throw std::out_of_range("an event of a node that has not joined");
  const auto event = shared_frame(reply(Reply::event).number(*from).text(text));
  for (const auto& [rank, node] : joined_) {
    if (rank == 0 || !only_node0) node.client->send(event);
  }
}

void Hub::lose(const ClientPtr& client, bool silent) {
  std::erase_if(waiters_, [&](const Waiter& waiter) { return waiter.client == client; });
  std::erase_if(joining_, [&](const auto& entry) { return entry.second.client == client; });
  const auto rank = node_of(client);
  if (!rank) return;
  joined_.erase(*rank);
  broken_ = true;
  const auto lost = shared_frame(reply(Reply::lost).number(*rank).number(silent));
  for (const auto& [other, node] : joined_) node.client->send(lost);
  const auto failed = shared_frame(reply(Reply::failed).text("lost " + client->address()));
  for (const Waiter& waiter : waiters_) waiter.client->send(failed);
  waiters_.clear();
}

void Hub::sweep(Clock::time_point now) {
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    if (waiter.deadline > now) return false;
    ByteWriter late = reply(Reply::late);
    for (std::size_t at = waiter.there; at < waiter.keys.size(); ++at) {
      if (values_.count(waiter.keys[at]) == 0) late.number(at);
    }
    waiter.client->send(shared_frame(late));
    return true;
  });
  const auto is_late = [&](const auto& entry) { return entry.second.time <= now; };
  ByteWriter missing = reply(Reply::late);
  for (uint64_t node = 0; !joining_.empty() && node < nodes_; ++node) {
    if (joining_.count(node) == 0) missing.number(node);
  }
  std::erase_if(joining_, [&](const auto& entry) {
    if (!is_late(entry)) return false;
    const auto& [node, joining] = entry;
    if (is_running(node)) {
      refuse_second(joining.client, node, joined_.at(node));
    } else {
      joining.client->send(shared_frame(missing));
    }
    return true;
  });
  const auto pause = swept_ == Clock::time_point{} || now - swept_ < kPause ? Clock::duration(0) : now - swept_;
  swept_ = now;
  std::vector<ClientPtr> silent;
  for (auto& [rank, node] : joined_) {
    node.time = std::min(now, node.time + pause);
    if (now - node.time > kSilence) silent.push_back(node.client);
  }
  for (const ClientPtr& client : silent) {
    lose(client, true);
    client->close();
  }
}

}  // namespace ddprun::launch
