#include "launch/net/hub.hpp"

#include <algorithm>

#include "base/store.hpp"
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

void refuse(const Hub::ClientPtr& client, const std::string& reason) {
  client->send(shared_frame(ByteWriter().number(Reply::refused).text(reason)));
}

// The reply to requests that have waited too long: which of `count` numbers are not there.
template <class IsThere>
std::shared_ptr<const std::string> missing(uint64_t count, const IsThere& is_there) {
  auto late = ByteWriter().number(Reply::late);
  for (uint64_t number = 0; number < count; ++number) {
    if (!is_there(number)) late.number(number);
  }
  return shared_frame(late);
}

}  // namespace

void Hub::handle(const ClientPtr& client, std::string_view bytes, Clock::time_point now) {
  ByteReader reader(bytes);
  const auto deadline = [&] { return now + milliseconds(std::min(reader.number(), kMostMilliseconds)); };
  switch (reader.number<Request>()) {
    case Request::exchange: return exchange({client, deadline()}, reader, now);
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
      return client->send(shared_frame(ByteWriter().number(Reply::pong)));
  }
  throw std::out_of_range("an unknown request");
}

std::string Hub::Wanted::key(uint64_t rank) const {
  return ranks ? rank_key(name, static_cast<int64_t>(rank)) : name;
}

void Hub::exchange(const Waiter& waiter, ByteReader& reader, Clock::time_point now) {
  if (reader.number() != 0) {
    const std::string key = reader.text();
    const auto [value, is_new] = values_.try_emplace(key, Value{reader.text(), waiter.client->address()});
    if (!is_new) {
      return refuse(waiter.client, "store: the key \"" + key + "\" is set already, by a process at " +
                                       value->second.address + "; each is set once per job: is this rank there twice?");
    }
  }
  Wanted wanted;
  if (!reader.empty()) wanted = {reader.text(), std::nullopt};
  if (!reader.empty()) wanted.ranks = reader.number();
  if (wanted.count() > kLargestJob) throw std::out_of_range("a job of too many ranks");
  waiting_[wanted].waiters.push_back(waiter);
  answer();
  if (waiter.deadline <= now && waiting_.count(wanted) > 0) answer_late(now);  // it does not wait
}

// Answers the requests whose keys are all set.
void Hub::answer() {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    auto& [wanted, waiting] = *at;
    while (waiting.there < wanted.count() && values_.count(wanted.key(waiting.there)) > 0) ++waiting.there;
    if (waiting.there < wanted.count()) {
      ++at;
      continue;
    }
    auto writer = ByteWriter().number(Reply::values);
    for (uint64_t rank = 0; rank < wanted.count(); ++rank) writer.text(values_.at(wanted.key(rank)).text);
    const auto values = shared_frame(writer);
    for (const Waiter& waiter : waiting.waiters) waiter.client->send(values);
    at = waiting_.erase(at);
  }
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
  if (node_of(client) || std::ranges::any_of(joining_, [&](auto& each) { return each.second.client == client; })) {
    throw std::out_of_range("a client joins twice");  // it would be two nodes
  }
  if (nodes_ == 0) nodes_ = nodes;
  if (nodes != nodes_) {
    return refuse(client, "this node has --nnodes " + std::to_string(nodes) + ", and the first has " +
                              std::to_string(nodes_) + ": give all nodes the same number");
  }
  if (survives_ && !broken_ && joined_.count(node) == 0) return take_back(node, {client, std::move(info), now}, now);
  if (const auto same = joining_.find(node); same != joining_.end()) {
    return refuse_second(client, node, same->second);
  }
  // A node that was lost may come back before its old connection has ended.
  if (is_running(node)) deadline = std::min(deadline, now + 2 * kSilence);
  joining_[node] = {client, std::move(info), deadline};
  if (joining_.size() == nodes_) start(now);
}

void Hub::refuse_second(const ClientPtr& client, uint64_t node, const Node& first) {
  refuse(client, "two nodes have --node-rank " + std::to_string(node) + ", at " + first.client->address() + " and " +
                     client->address() + ": give each node its own rank");
}

void Hub::start(Clock::time_point now) {
  values_.clear();
  waiting_.clear();
  joined_ = std::move(joining_);
  joining_.clear();
  broken_ = false;
  infos_.clear();
  for (auto& [rank, node] : joined_) {
    node.time = now;
    infos_.push_back(node.info);
  }
  const auto reply = started(false);
  ++starts_;
  for (const auto& [rank, node] : joined_) node.client->send(reply);
}

std::shared_ptr<const std::string> Hub::started(bool runs) const {
  auto writer = ByteWriter().number(Reply::started).number(starts_ - (runs ? 1 : 0)).number(runs);
  for (const std::string& info : infos_) writer.text(info);
  return shared_frame(writer);
}

void Hub::take_back(uint64_t node, Node by, Clock::time_point now) {
  const auto back = shared_frame(ByteWriter().number(Reply::back).number(node).text(by.info));
  for (const auto& [other, joined] : joined_) joined.client->send(back);
  by.client->send(started(true));
  joined_[node] = {std::move(by.client), std::move(by.info), now};
}

void Hub::pass_on(const ClientPtr& client, const std::string& text, bool only_node0) {
  const auto from = node_of(client);
  if (!from) throw std::out_of_range("an event of a node that has not joined");
  const auto event = shared_frame(ByteWriter().number(Reply::event).number(*from).text(text));
  for (const auto& [rank, node] : joined_) {
    if (rank == 0 || !only_node0) node.client->send(event);
  }
}

void Hub::lose(const ClientPtr& client, bool silent) {
  for (auto& [wanted, waiting] : waiting_) {
    std::erase_if(waiting.waiters, [&](const Waiter& waiter) { return waiter.client == client; });
  }
  std::erase_if(joining_, [&](const auto& entry) { return entry.second.client == client; });
  const auto rank = node_of(client);
  if (!rank) return;
  joined_.erase(*rank);
  const auto lost = shared_frame(ByteWriter().number(Reply::lost).number(*rank).number(silent));
  for (const auto& [other, node] : joined_) node.client->send(lost);
  if (survives_) {
    const auto again = joining_.extract(*rank);
    if (!again.empty()) take_back(*rank, again.mapped(), Clock::now());
    return;
  }
  broken_ = true;
  const auto failed = shared_frame(ByteWriter().number(Reply::failed).text("lost " + client->address()));
  for (const auto& [wanted, waiting] : waiting_) {
    for (const Waiter& waiter : waiting.waiters) waiter.client->send(failed);
  }
  waiting_.clear();
}

// Answers the requests whose deadline has passed.
void Hub::answer_late(Clock::time_point now) {
  for (auto& [wanted, waiting] : waiting_) {
    const auto is_there = [&, &keys = wanted](uint64_t rank) { return values_.count(keys.key(rank)) > 0; };
    std::shared_ptr<const std::string> late;  // made once: with thousands of ranks it is long
    std::erase_if(waiting.waiters, [&, count = wanted.count()](const Waiter& waiter) {
      if (waiter.deadline > now) return false;
      if (!late) late = missing(count, is_there);
      waiter.client->send(late);
      return true;
    });
  }
}

void Hub::sweep(Clock::time_point now) {
  answer_late(now);
  std::shared_ptr<const std::string> absent;  // made once, before a node is erased
  std::erase_if(joining_, [&](const auto& entry) {
    const auto& [node, joining] = entry;
    if (joining.time > now) return false;
    if (!absent) absent = missing(nodes_, [&](uint64_t other) { return joining_.count(other) > 0; });
    if (is_running(node)) {
      refuse_second(joining.client, node, joined_.at(node));
    } else {
      joining.client->send(absent);
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
