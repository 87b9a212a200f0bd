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

// The reply to calls that have waited too long: which of `size` ranks are missing.
template <typename Present>
std::shared_ptr<const std::string> late(const Present& present, uint64_t size) {
  ByteWriter missing = reply(Reply::late);
  auto next = present.begin();
  for (uint64_t rank = 0; rank < size; ++rank) {
    if (next != present.end() && next->first == rank) {
      ++next;
    } else {
      missing.number(rank);
    }
  }
  return shared_frame(missing);
}

}  // namespace

void Hub::handle(const ClientPtr& client, std::string_view bytes, Clock::time_point now) {
  ByteReader reader(bytes);
  const auto deadline = [&] { return now + milliseconds(std::min(reader.number(), kMostMilliseconds)); };
  switch (static_cast<Request>(reader.number())) {
    case Request::set: {
      std::string key = reader.text();
      return set(client, std::move(key), reader.text());
    }
    case Request::get: {
      const std::string key = reader.text();
      return get({client, deadline()}, key);
    }
    case Request::gather: {
      const std::string name = reader.text();
      const uint64_t rank = reader.number(), size = reader.number();
      std::string value = reader.text();
      return gather({client, deadline()}, name, rank, size, std::move(value));
    }
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
      return client->send(shared_frame(reply(Reply::done)));
    case Request::silence: lose(client, true); return client->close();
    case Request::ping:
      if (const auto node = node_of(client)) joined_.at(*node).time = now;
      return client->send(shared_frame(reply(Reply::pong)));
  }
  throw std::out_of_range("an unknown request");
}

void Hub::set(const ClientPtr& client, std::string key, std::string value) {
  if (values_.count(key) > 0) {
    return refuse(client, "store: the key \"" + key + "\" is set already; each is set once per job");
  }
  if (const auto waiting = getters_.find(key); waiting != getters_.end()) {
    const auto found = shared_frame(reply(Reply::value).text(value));
    for (const Waiter& waiter : waiting->second) waiter.client->send(found);
    getters_.erase(waiting);
  }
  values_.emplace(std::move(key), std::move(value));
  client->send(shared_frame(reply(Reply::done)));
}

void Hub::get(const Waiter& waiter, const std::string& key) {
  if (const auto found = values_.find(key); found != values_.end()) {
    return waiter.client->send(shared_frame(reply(Reply::value).text(found->second)));
  }
  getters_[key].push_back(waiter);
}

void Hub::gather(const Waiter& waiter, const std::string& name, uint64_t rank, uint64_t size, std::string value) {
  if (size == 0 || size > kLargestJob || rank >= size) throw std::out_of_range("a rank outside the job");
  Gather& all = gathers_[name];
  if (all.size == 0) all.size = size;
  if (all.size != size) {
    return refuse(waiter.client, "rank " + std::to_string(rank) + " (" + waiter.client->address() + ") has a job of " +
                                     std::to_string(size) + " ranks, and others have one of " +
                                     std::to_string(all.size) + ": give all ranks the same world size");
  }
  if (const auto first = all.parts.find(rank); first != all.parts.end()) {
    return refuse(waiter.client, "two processes are rank " + std::to_string(rank) + ", at " + first->second.address +
                                     " and " + waiter.client->address() + ": give each process its own rank");
  }
  all.parts[rank] = {std::move(value), waiter.client->address()};
  all.waiters.push_back(waiter);
  if (all.parts.size() < size) return;

  ByteWriter writer = reply(Reply::values);
  for (auto& [each, part] : all.parts) {
    writer.text(part.value);
    std::string().swap(part.value);  // no rank asks again
  }
  const auto values = shared_frame(writer);
  for (const Waiter& each : all.waiters) each.client->send(values);
  all.waiters.clear();
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
  getters_.clear();
  gathers_.clear();
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
  const auto is_gone = [&](const Waiter& waiter) { return waiter.client == client; };
  for (auto& [key, waiters] : getters_) std::erase_if(waiters, is_gone);
  for (auto& [name, gather] : gathers_) std::erase_if(gather.waiters, is_gone);
  std::erase_if(joining_, [&](const auto& entry) { return entry.second.client == client; });
  const auto rank = node_of(client);
  if (!rank) return;
  joined_.erase(*rank);
  broken_ = true;
  const auto lost = shared_frame(reply(Reply::lost).number(*rank).number(silent));
  for (const auto& [other, node] : joined_) node.client->send(lost);
  fail_waiters("lost " + client->address());
}

void Hub::fail_waiters(const std::string& reason) {
  const auto failed = shared_frame(reply(Reply::failed).text(reason));
  for (auto& [key, waiters] : getters_) {
    for (const Waiter& waiter : waiters) waiter.client->send(failed);
  }
  getters_.clear();
  for (auto& [name, gather] : gathers_) {
    for (const Waiter& waiter : gather.waiters) waiter.client->send(failed);
    gather.waiters.clear();
  }
}

void Hub::sweep(Clock::time_point now) {
  const auto expire = [&](std::vector<Waiter>& waiters, const auto& make_reply) {
    std::shared_ptr<const std::string> answer;  // made once: with thousands of ranks it is long
    std::erase_if(waiters, [&](const Waiter& waiter) {
      if (waiter.deadline > now) return false;
      if (!answer) answer = make_reply();
      waiter.client->send(answer);
      return true;
    });
  };
  for (auto& [key, waiters] : getters_) {
    expire(waiters, [] { return shared_frame(reply(Reply::late)); });
  }
  std::erase_if(getters_, [](const auto& entry) { return entry.second.empty(); });
  for (auto& [name, gather] : gathers_) {
    expire(gather.waiters, [&all = gather] { return late(all.parts, all.size); });
  }
  const auto is_late = [&](const auto& entry) { return entry.second.time <= now; };
  std::shared_ptr<const std::string> missing;
  if (std::any_of(joining_.begin(), joining_.end(), is_late)) missing = late(joining_, nodes_);
  std::erase_if(joining_, [&](const auto& entry) {
    if (!is_late(entry)) return false;
    const auto& [node, joining] = entry;
    if (is_running(node)) {
      refuse_second(joining.client, node, joined_.at(node));
    } else {
      joining.client->send(missing);
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
