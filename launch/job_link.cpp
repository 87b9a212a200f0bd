#include "launch/job_link.hpp"

#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "launch/net/connection.hpp"
#include "launch/net/hub.hpp"
#include "launch/net/protocol.hpp"

namespace ddprun::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

enum class Message : uint64_t { failing, stop, ended, progress, stuck, member, news };

constexpr milliseconds kPing{250};
constexpr milliseconds kReport{1000};  // node 0 may get progress from many nodes
// How old the progress of a rank may be. On one host two checks must agree: ranks do not end a step at the same moment.
constexpr milliseconds kAgeHere{25}, kAgeOfOthers{1200};
constexpr std::size_t kLongestText = 1 << 16;  // for example of a rank's failure

// What is sent of each.
auto fields(NodeInfo& info) {
  return std::tie(info.host, info.nproc, info.program_port);
}
auto fields(Progress& progress) {
  return std::tie(progress.step, progress.phase, progress.bucket, progress.own_us);
}
auto fields(RankEnd& end) {
  return std::tie(end.rank, end.pid, end.host, end.time, end.signal, end.exit_code, end.killed_by_launcher, end.stopped,
                  end.lost, end.silent, end.hung, end.memory_limit, end.crash);
}

// Clocks of hosts differ, so a time is sent as an age. Makes the one of the other.
void turn_times(RankEnd& end, nanoseconds now) {
  end.time = now - end.time;
  if (end.failure) end.failure->time = now - end.failure->time;
}

void put_end(ByteWriter& writer, RankEnd end, nanoseconds now) {
  turn_times(end, now);
  end.crash = end.crash.substr(0, kLongestText);
  writer.fields(fields(end)).fields(fields(end.progress)).number(end.failure.has_value());
  if (!end.failure) return;
  end.failure->message = end.failure->message.substr(0, kLongestText);
  writer.fields(fields(*end.failure));
}

RankEnd get_end(ByteReader& reader, nanoseconds now) {
  RankEnd end;
  reader.fields(fields(end));
  reader.fields(fields(end.progress));
  if (reader.number() != 0) reader.fields(fields(end.failure.emplace()));
  turn_times(end, now);
  return end;
}

nanoseconds this_time() {
  return JobLink::Clock::now().time_since_epoch();
}

}  // namespace

JobLink::JobLink(NodeInfo only) : nodes_{std::move(only)}, states_(1), stalls_(kAgeHere) {}

JobLink::JobLink(const StoreAddress& address, int node, int nodes, NodeInfo info, milliseconds timeout, bool survives)
    : node_(static_cast<std::size_t>(node)),
      survives_(survives),
      connection_(std::make_unique<Connection>(address, Clock::now() + timeout)),
      states_(static_cast<std::size_t>(nodes)),
      stalls_(kAgeOfOthers) {
  const std::string own_info = ByteWriter().fields(fields(info)).bytes();
  connection_->send(
      ByteWriter().number(Request::join).number(node).number(nodes).number(timeout.count()).text(own_info));
  const std::string payload = connection_->receive(Clock::now() + timeout + kAnswer);
  ByteReader reader(payload);
  const auto reply = reader.number<Reply>();
  if (reply == Reply::late) {
    throw Error(ExitCode::rendezvous, "waited " + std::to_string(timeout.count()) + " ms for all " +
                                          std::to_string(nodes) +
                                          " nodes; these --node-rank did not come: " + missing_ranks(reader));
  }
  if (reply != Reply::started) throw Error(ExitCode::rendezvous, reader.text());
  starts_ = reader.number<int>();
  is_back_ = reader.number() != 0;
  while (!reader.empty()) ByteReader(reader.text()).fields(fields(nodes_.emplace_back()));
  last_message_ = last_poll_ = Clock::now();
  NodeInfo& own = nodes_[node_];
  if (own.nproc != info.nproc) {
    throw Error(ExitCode::rendezvous, "this node has " + std::to_string(info.nproc) + " ranks, and had " +
                                          std::to_string(own.nproc) + " before it was lost: give it as many again");
  }
  own = info;
}

JobLink::~JobLink() {
  send(ByteWriter().number(Request::leave));
}

void JobLink::disconnect() {
  connection_.reset();
}

int JobLink::fd() const {
  return connected() ? connection_->fd() : -1;
}

int JobLink::first_rank(std::size_t node) const {
  int first = 0;
  for (std::size_t before = 0; before < node; ++before) first += nodes_[before].nproc;
  return first;
}

void JobLink::send(const ByteWriter& message) noexcept try {
  if (connected()) connection_->send(message);
} catch (const std::exception&) {
  // The connection has ended: receive() notices it.
}

void JobLink::publish(const ByteWriter& message) {
  send(ByteWriter().number(Request::event).text(message.bytes()));
}

void JobLink::publish_for_good(const ByteWriter& message) {
  for_good_.push_back(message.bytes());
  publish(message);
}

void JobLink::turn() {
  if (connected()) receive();
  const auto now = Clock::now();
  if (now < next_ping_) return;
  next_ping_ = now + kPing;
  send(ByteWriter().number(Request::ping));
}

void JobLink::receive() {
  bool silent = false;
  try {
    std::string payload;
    while (connection_->poll(payload)) {
      last_message_ = Clock::now();
      ByteReader reader(payload);
      const auto reply = reader.number<Reply>();
      if (reply != Reply::event && reply != Reply::lost && reply != Reply::back) continue;
      const std::size_t node = reader.number();
      if (reply == Reply::event) read(node, reader.text());
      if (reply == Reply::lost) lose(node, reader.number() != 0);
      if (reply != Reply::back) continue;
      states_[node] = {};
      NodeInfo info;  // perhaps that of another host
      ByteReader(reader.text()).fields(fields(info));
      nodes_[node].host = info.host;
      if (node_ == 0) changes_.push_back({ranks_of(node), true});
      for (const std::string& message : for_good_) send(ByteWriter().number(Request::event).text(message));
    }
    const auto now = Clock::now();
    // If this process was paused, perhaps with the server, that time does not count as silence of the server.
    if (now - last_poll_ > kPing + Hub::kPause) last_message_ = std::min(now, last_message_ + (now - last_poll_));
    last_poll_ = now;
    silent = now - last_message_ > Hub::kSilence;
    if (!silent) return;
  } catch (const std::exception&) {
    // The server's connection has ended.
  }
  // The network may still carry messages in the other direction. The server then need not wait for the silence of this
  // node, and its node ends as early.
  if (silent) send(ByteWriter().number(Request::silence));
  disconnect();
  lose(0, silent);
}

void JobLink::read(std::size_t from, const std::string& text) {
  Node& node = states_[from];
  ByteReader reader(text);
  const auto kind = reader.number<Message>();
  if (from == node_ && kind != Message::ended) return;
  switch (kind) {
    case Message::member: {
      const bool trains = reader.number() != 0;
      changes_.push_back({get_end(reader, this_time()), trains});
      return;
    }
    case Message::news: news_.push_back(reader.text()); return;
    case Message::failing: return note_failure();
    case Message::stop: stop_signal_ = reader.number<int>(); return;
    case Message::progress:
      node.progress.clear();
      while (!reader.empty()) reader.fields(fields(node.progress.emplace_back()));
      return;
    case Message::stuck: {
      RankProgress rank{reader.number<int>(), "", {}};
      reader.fields(fields(rank.progress));
      stalls_.note_hang(rank);
      stuck_.push_back(rank.rank);
      return;
    }
    case Message::ended:
      node.ended = true;
      if (from == node_) return;
      node.ends.clear();  // it may be repeated
      for (const auto now = this_time(); !reader.empty();) node.ends.push_back(get_end(reader, now));
  }
}

void JobLink::lose(std::size_t which, bool silent) {
  Node& node = states_[which];
  if (survives_ ? node.lost : node.ended) return;
  RankEnd lost = ranks_of(which);
  lost.silent = silent;
  const bool had_ended = std::exchange(node.ended, true);
  node.lost = true;
  node.progress.clear();
  if (survives_ && which != 0) {
    if (node_ == 0) changes_.push_back({lost});
    return;
  }
  if (had_ended) return;
  node.ends = {lost};
  note_failure();
}

// All ranks of a node.
RankEnd JobLink::ranks_of(std::size_t node) const {
  const NodeInfo& info = nodes_[node];
  return {.rank = first_rank(node), .host = info.host, .time = this_time(), .lost = info.nproc};
}

int JobLink::nodes_left() const {
  return static_cast<int>(std::ranges::count(states_, false, &Node::lost));
}

bool JobLink::have_ended() const {
  return std::ranges::all_of(states_, [&](const Node& node) { return node.ended || &node == &states_[node_]; });
}

std::vector<RankEnd> JobLink::ends() const {
  std::vector<RankEnd> all;
  for (const Node& node : states_) all.insert(all.end(), node.ends.begin(), node.ends.end());
  return all;
}

std::vector<std::string> JobLink::watch(const std::vector<Progress>& own, milliseconds interval) {
  const auto now = Clock::now();
  if (now < next_watch_) return {};
  next_watch_ = now + (node_ == 0 ? interval : kReport);
  if (node_ != 0) {
    auto writer = ByteWriter().number(Message::progress);
    for (Progress progress : own) writer.fields(fields(progress));
    send(ByteWriter().number(Request::report).text(writer.bytes()));
    return {};
  }
  states_[0].progress = own;
  std::vector<std::string> lines;
  for (StallWatch::Line& line : stalls_.check(progress(), now)) {
    lines.push_back(std::move(line.text));
    if (!line.stuck) continue;
    stuck_.push_back(line.stuck->rank);
    announce_stuck(*line.stuck);
  }
  return lines;
}

std::vector<RankProgress> JobLink::progress() const {
  std::vector<RankProgress> all;
  for (std::size_t node = 0; node < states_.size(); ++node) {
    int rank = first_rank(node);
    for (const Progress& progress : states_[node].progress) all.push_back({rank++, nodes_[node].host, progress});
  }
  return all;
}

void JobLink::announce(const MemberChange& change) {
  if (node_ == 0) return changes_.push_back(change);
  auto writer = ByteWriter().number(Message::member).number(change.trains);
  put_end(writer, change.end, this_time());
  send(ByteWriter().number(Request::report).text(writer.bytes()));
}

void JobLink::announce_news(const std::string& line) {
  news_.push_back(line);
  publish(ByteWriter().number(Message::news).text(line));
}

void JobLink::announce_failing() {
  publish_for_good(ByteWriter().number(Message::failing));
}

void JobLink::announce_stop(int signal) {
  publish_for_good(ByteWriter().number(Message::stop).number(signal));
}

void JobLink::announce_stuck(const RankProgress& rank) {
  Progress progress = rank.progress;
  publish(ByteWriter().number(Message::stuck).number(rank.rank).fields(fields(progress)));
}

void JobLink::announce_ends(const std::vector<RankEnd>& ends) {
  auto writer = ByteWriter().number(Message::ended);
  const auto now = this_time();
  for (const RankEnd& end : ends) put_end(writer, end, now);
  publish_for_good(writer);
}

RankEnd JobLink::own_end(const Error& error) const {
  const Failure failure{first_rank(), error.code(), this_time(), error.what()};
  return {.rank = failure.rank,
          .pid = ::getpid(),
          .host = nodes_[node_].host,
          .time = failure.time,
          .exit_code = static_cast<int>(error.code()),
          .failure = failure};
}

void JobLink::fail(const Error& error) {
  announce_failing();
  announce_ends({own_end(error)});
  disconnect();
}

}  // namespace ddprun::launch
