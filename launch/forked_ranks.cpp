#include "launch/forked_ranks.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "base/file.hpp"
#include "base/subprocess.hpp"
#include "launch/net/bytes.hpp"

namespace ddprun::launch {
namespace {

using Words = std::vector<std::string>;

// Their size first: other processes that the launcher has forked may keep the pipe open, so its end does not mark that
// of the orders.
std::string packed(const Words& environment) {
  ByteWriter words;
  for (const std::string& word : environment) words.text(word);
  return ByteWriter().text(words.bytes()).bytes();
}

// Nothing if the launcher does not need this rank.
std::optional<std::string> read_orders(const UniqueFd& pipe) {
  std::string size, text;
  if (read_all(pipe.get(), size, 8) != 0 || size.size() != 8) return std::nullopt;
  const uint64_t bytes = ByteReader(size).number();
  if (read_all(pipe.get(), text, bytes) != 0 || text.size() != bytes) return std::nullopt;
  return text;
}

// The process that waits, and then is a rank.
void be_rank(UniqueFd pipe, const ForkedRanks::Main& main) {
  const auto text = read_orders(pipe);
  pipe.reset();
  if (!text) return;
  ByteReader orders(*text);
  Words environment;
  while (!orders.empty()) environment.push_back(orders.text());
  auto variables = pointers(environment);
  environ = variables.data();
  // So that people and tools can find it: /proc/PID/environ is that of the launcher.
  if (const char* rank = std::getenv("DDPRUN_RANK")) ::prctl(PR_SET_NAME, ("ddprun-rank" + std::string(rank)).c_str());
  ::_exit(main());
}

}  // namespace

ForkedRanks::ForkedRanks(int count, const Main& main) {
  std::cout.flush();
  std::fflush(nullptr);  // otherwise each rank would write it too
  for (int i = 0; i < count; ++i) {
    Pipe orders = make_pipe();
    Child child = fork_child([&] {
      waiting_.clear();  // closes the pipes of the others
      orders.write.reset();
      be_rank(std::move(orders.read), main);
    });
    waiting_.push_back({std::move(child), std::move(orders.write)});
  }
  std::reverse(waiting_.begin(), waiting_.end());
}

ForkedRanks::~ForkedRanks() {
  for (const Waiting& one : waiting_) {
    ::kill(one.child.pid, SIGKILL);
    wait_for_child(one.child.pid);
  }
}

std::optional<Child> ForkedRanks::start(const Words& environment, const std::function<void(pid_t)>& before_start) {
  if (waiting_.empty()) return std::nullopt;
  Waiting one = std::move(waiting_.back());
  waiting_.pop_back();
  before_start(one.child.pid);
  write_all(one.orders.get(), packed(environment));  // if it was killed, its parent will see that
  return std::move(one.child);
}

}  // namespace ddprun::launch
