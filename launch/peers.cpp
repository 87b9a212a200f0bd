#include "launch/peers.hpp"

#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace ddprun::launch {
namespace {

enum class Message : uint64_t { failing, stop, ended, progress, stuck };

constexpr int kMostRanks = 1 << 20;
constexpr std::size_t kLongestMessage = 1 << 16;  // of a rank's failure

ByteWriter message(Message kind) {
  ByteWriter writer;
  writer.number(static_cast<uint64_t>(kind));
  return writer;
}

int whole(ByteReader& reader) {
  return static_cast<int>(static_cast<int64_t>(reader.number()));
}

void write(ByteWriter& writer, const Progress& progress) {
  writer.number(static_cast<uint64_t>(progress.step))
      .number(static_cast<uint64_t>(progress.phase))
      .number(static_cast<uint64_t>(progress.bucket))
      .number(static_cast<uint64_t>(progress.own_us));
}

Progress read_progress(ByteReader& reader) {
  Progress progress;
  progress.step = static_cast<int64_t>(reader.number());
  progress.phase = static_cast<Phase>(std::min<uint64_t>(reader.number(), static_cast<uint64_t>(Phase::done)));
  progress.bucket = whole(reader);
  progress.own_us = static_cast<int64_t>(reader.number());
  return progress;
}

// Clocks of hosts differ, so a time is sent as an age.
void write(ByteWriter& writer, const RankEnd& end, std::chrono::nanoseconds now) {
  const auto number = [&](auto value) { writer.number(static_cast<uint64_t>(value)); };
  number(end.rank);
  number(end.pid);
  writer.text(end.host);
  number((now - end.time).count());
  number(end.signal);
  number(end.exit_code);
  number(end.killed_by_launcher);
  number(end.stopped);
  number(end.hung);
  number(end.memory_limit);
  writer.text(std::string_view(end.crash).substr(0, kLongestMessage));
  write(writer, end.progress);
  number(end.failure.has_value());
  if (!end.failure) return;
  number(end.failure->code);
  number((now - end.failure->time).count());
  writer.text(std::string_view(end.failure->message).substr(0, kLongestMessage));
}

RankEnd read_end(ByteReader& reader, std::chrono::nanoseconds now) {
  RankEnd end;
  const auto time = [&] { return now - std::chrono::nanoseconds(static_cast<int64_t>(reader.number())); };
  end.rank = whole(reader);
  end.pid = whole(reader);
  end.host = reader.text();
  end.time = time();
  end.signal = whole(reader);
  end.exit_code = whole(reader);
  end.killed_by_launcher = reader.number() != 0;
  end.stopped = reader.number() != 0;
  end.hung = reader.number() != 0;
  end.memory_limit = reader.number() != 0;
  end.crash = reader.text();
  end.progress = read_progress(reader);
  if (reader.number() == 0) return end;
  Failure failure;
  failure.rank = end.rank;
  failure.code = static_cast<ExitCode>(whole(reader));
  failure.time = time();
  failure.message = reader.text();
  end.failure = std::move(failure);
  return end;
}

std::chrono::nanoseconds this_time() {
  return Peers::Clock::now().time_since_epoch();
}

}  // namespace

std::string NodeInfo::encode() const {
  return ByteWriter()
      .text(host)
      .number(static_cast<uint64_t>(nproc))
      .number(static_cast<uint64_t>(program_port))
      .bytes();
}

NodeInfo NodeInfo::decode(const std::string& text) {
  ByteReader reader(text);
  NodeInfo info;
  info.host = reader.text();
  info.nproc = whole(reader);
  info.program_port = whole(reader);
  if (info.nproc < 1 || info.nproc > kMostRanks) throw std::out_of_range("a number of ranks");
  return info;
}

Peers::Peers(const StoreAddress& address, int node, int nodes, const NodeInfo& info, std::chrono::milliseconds timeout)
    : node_(node), link_(address, node, nodes, info.encode(), timeout), states_(static_cast<std::size_t>(nodes)) {
  for (const std::string& each : link_.infos()) {
    try {
      nodes_.push_back(NodeInfo::decode(each));
    } catch (const std::out_of_range&) {
      throw Error(ExitCode::rendezvous, "node " + std::to_string(nodes_.size()) +
                                            " runs another version of ddprun: install the same one on all hosts");
    }
  }
}

Peers::~Peers() {
  link_.leave();
}

int Peers::first_rank(int node) const {
  int first = 0;
  for (int before = 0; before < node; ++before) first += nodes_[static_cast<std::size_t>(before)].nproc;
  return first;
}

int Peers::world() const {
  return first_rank(static_cast<int>(nodes_.size()));
}

Peers::Clock::time_point Peers::turn() {
  for (const NodeEvent& event : link_.events()) {
    if (event.node < 0 || event.node >= static_cast<int>(states_.size())) continue;
    try {
      read(event);
    } catch (const std::exception&) {  // its message has no meaning here: another version of ddprun
      lose(event.node, false);
    }
  }
  return link_.keep_alive();
}

void Peers::read(const NodeEvent& event) {
  if (event.lost) return lose(event.node, event.silent);
  Node& node = states_.at(static_cast<std::size_t>(event.node));
  ByteReader reader(event.text);
  if (event.node == node_) {
    node.ended = node.ended || static_cast<Message>(reader.number()) == Message::ended;
    return;
  }
  switch (static_cast<Message>(reader.number())) {
    case Message::failing: failing_ = true; return;
    case Message::stop: stop_signal_ = whole(reader); return;
    case Message::progress:
      node.progress.clear();
      while (!reader.empty()) node.progress.push_back(read_progress(reader));
      return;
    case Message::stuck: {
      const int rank = whole(reader);
      stuck_.push_back({rank, "", read_progress(reader)});
      return;
    }
    case Message::ended: node.ended = true;
  }
  const auto now = this_time();
  while (!reader.empty()) node.ends.push_back(read_end(reader, now));
}

void Peers::lose(int which, bool silent) {
  Node& node = states_.at(static_cast<std::size_t>(which));
  if (node.ended) return;
  const NodeInfo& info = nodes_[static_cast<std::size_t>(which)];
  RankEnd lost;
  lost.rank = first_rank(which);
  lost.lost = info.nproc;
  lost.silent = silent;
  lost.host = info.host;
  lost.time = this_time();
  node = {true, {lost}, {}};
  failing_ = true;
}

bool Peers::have_ended() const {
  for (std::size_t node = 0; node < states_.size(); ++node) {
    if (static_cast<int>(node) != node_ && !states_[node].ended) return false;
  }
  return true;
}

std::vector<RankEnd> Peers::ends() const {
  std::vector<RankEnd> all;
  for (const Node& node : states_) all.insert(all.end(), node.ends.begin(), node.ends.end());
  return all;
}

void Peers::report_progress(const std::vector<Progress>& ranks) {
  ByteWriter writer = message(Message::progress);
  for (const Progress& progress : ranks) write(writer, progress);
  link_.report(writer.bytes());
}

std::vector<RankPlace> Peers::places() const {
  std::vector<RankPlace> places;
  for (std::size_t node = 0; node < states_.size(); ++node) {
    int rank = first_rank(static_cast<int>(node));
    for (const Progress& progress : states_[node].progress) places.push_back({rank++, nodes_[node].host, progress});
  }
  return places;
}

void Peers::announce_failing() {
  link_.publish(message(Message::failing).bytes());
}

void Peers::announce_stop(int signal) {
  link_.publish(message(Message::stop).number(static_cast<uint64_t>(signal)).bytes());
}

void Peers::announce_stuck(const RankPlace& place) {
  ByteWriter writer = message(Message::stuck);
  writer.number(static_cast<uint64_t>(place.rank));
  write(writer, place.progress);
  link_.publish(writer.bytes());
}

void Peers::announce_ends(const std::vector<RankEnd>& ends) {
  ByteWriter writer = message(Message::ended);
  const auto now = this_time();
  for (const RankEnd& end : ends) write(writer, end, now);
  link_.publish(writer.bytes());
}

void Peers::fail(const Error& error) {
  RankEnd end;
  end.rank = first_rank();
  end.pid = ::getpid();
  end.host = nodes_[static_cast<std::size_t>(node_)].host;
  end.time = this_time();
  end.exit_code = static_cast<int>(error.code());
  end.failure = Failure{end.rank, error.code(), end.time, error.what()};
  announce_failing();
  announce_ends({end});
  disconnect();
}

}  // namespace ddprun::launch
