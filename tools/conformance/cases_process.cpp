// What a plugin does to the process and to the machine: what it leaves open, changes or writes.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <functional>
#include <limits>
#include <regex>
#include <set>
#include <string>
#include <thread>

#include "base/log.hpp"
#include "ddprun/plugin/words.hpp"
#include "testing/leftovers.hpp"
#include "tools/conformance/collective.hpp"
#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {
namespace {

using testing::As;

constexpr std::ptrdiff_t kAnySize = std::numeric_limits<std::ptrdiff_t>::max();  // a limit that nothing reaches

// Ranks count one after another, because counting opens a descriptor.
Held held_by_turns(Context& context) {
  Held held;
  for (int turn = 0; turn < context.size(); ++turn) {
    context.ranks().meet();
    if (turn == context.rank()) held = held_now();
  }
  context.ranks().meet();
  return held;
}

// What every run of `body` leaves, in words; "" if less than `limit`, which is for one rank. A leak grows in each
// round. A cache that is still being filled, such as glibc's of the stacks of threads that ended, does not.
std::string left_by(Context& context, As as, int rounds, Held limit, const std::function<void()>& body) {
  body();  // for what a library opens first
  Held least{kAnySize, kAnySize, kAnySize, kAnySize}, before = held_by_turns(context);
  for (int round = 0; round < rounds; ++round) {
    body();
    std::this_thread::sleep_for(milliseconds(25));  // for threads about to end, and requests that are reused later
    const Held after = held_by_turns(context);
    for (const auto member : {&Held::descriptors, &Held::threads, &Held::heap, &Held::mapped}) {
      least.*member = std::min(least.*member, (after - before).*member);
    }
    before = after;
  }
  const int ranks = as == As::threads ? context.size() : 1;  // in this process
  // With a GPU, the driver keeps memory too. A sanitizer counts no heap, and keeps what was freed.
  const bool counts = context.settings().memory == Memory::host && before.heap > 0;
  limit.heap = counts ? limit.heap * ranks : kAnySize;
  limit.mapped = counts ? limit.mapped * ranks : kAnySize;
  return leak(least, limit);
}

void join_and_leave(Context& context, As as) {
  constexpr int kTimes = 4;
  const std::string left = left_by(context, as, 3, {kTimes, kTimes, kTimes * 50'000, kTimes << 20}, [&] {
    for (int i = 0; i < kTimes; ++i) {
      const auto backend = context.join({});
      if (context.settings().capabilities.alloc) backend->allocate(100'000).reset();
      context.wait(backend->barrier());
      context.ranks().meet();
    }
  });
  if (left.empty()) return;
  context.fail(left + " by " + std::to_string(kTimes) + " communicators that were created and destroyed");
}

// Every kind of collective, `times` times, and the end of each.
void call_all(Context& context, CommBackend& backend, int times) {
  auto calls = calls_of_each_kind(context.settings(), common_call(context.settings(), "auto", 1000));
  calls.push_back({.kind = Kind::barrier});
  for (const TestCall& what : calls) {
    for (int i = 0; i < times; ++i) run_plain(context, backend, what, context.settings().deadline);
  }
}

void holds_nothing_more(Context& context, As as) {
  constexpr int kTimes = 16;  // of each kind of collective; the limit of memory is for each call of one kind
  auto& backend = context.shared();
  const std::string left = left_by(context, as, 5, {kTimes / 2, kTimes / 2, kTimes * 2'048, kTimes * 32'768},
                                   [&] { call_all(context, backend, kTimes); });
  if (left.empty()) return;
  context.fail(left + " by " + std::to_string(kTimes) + " collectives of each kind, in each of 5 rounds");
}

// While nothing is called, a plugin's threads wait, and do not poll.
void rests(Context& context) {
  constexpr milliseconds kPause{500}, kMost{50};
  const auto cpu_time = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return milliseconds(time.tv_sec * 1000 + time.tv_nsec / 1'000'000);
  };
  const auto backend = context.join({});
  context.wait(backend->barrier());
  context.ranks().meet();
  const auto before = cpu_time();
  std::this_thread::sleep_for(kPause);
  const milliseconds used = cpu_time() - before;
  if (used > kMost) context.fail("used " + text_of(used) + " of a CPU in " + text_of(kPause) + " without a call");
  context.ranks().meet();
}

// What the plugin, or a library below it, writes to standard output and error. What it logs goes elsewhere.
void prints_nothing(Context& context) {
  const int file = ::memfd_create("printed", MFD_CLOEXEC), out = ::dup(1), err = ::dup(2);
  std::fflush(nullptr);
  log::set_level(log::Level::error);
  ::dup2(file, 1);
  ::dup2(file, 2);
  {
    const auto backend = context.join({});
    call_all(context, *backend, 2);
    context.ranks().meet();
  }
  std::fflush(nullptr);
  ::dup2(out, 1);
  ::dup2(err, 2);
  std::string printed(200, '\0');
  printed.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::pread(file, printed.data(), printed.size(), 0))));
  for (const int one : {file, out, err}) ::close(one);
  if (!printed.empty()) context.fail("printed: " + printable(printed.substr(0, printed.find('\n'))));
}

// In a world of its own, so that its communicator is the first of the process.
void changes_no_setting(Context& context) {
  ProcessState before = context.settings().before_load;
  before.adopt(ProcessState::now());
  const auto judge = [&](const std::string& when) {
    context.judge(before.difference(ProcessState::now(), context.settings().plugin.table->name), when + " changed ");
  };
  judge("loading the plugin");
  {
    const auto backend = context.join({});
    judge("create");
    call_all(context, *backend, 2);
    judge("a collective");
    context.ranks().meet();
  }
  judge("destroy");
}

constexpr const char* kBelongs = "; temporary files belong into $TMPDIR and must be removed";

// A file that appears meanwhile and stays, as rank 0 sees it; "" on all ranks if there is none. Fails if its
// name has the number of a rank's process.
std::string file_left_by(Context& context, const std::function<void()>& body) {
  const auto names = [] {
    std::set<std::string> all;
    for (const char* folder : {"/tmp", "/var/tmp", "."}) all.merge(names_in(folder));
    return all;
  };
  const auto before = names();
  context.ranks().meet();
  body();
  context.ranks().meet();
  std::vector<pid_t> pids(static_cast<std::size_t>(context.size()));
  const pid_t own = ::getpid();
  context.ranks().allgather(&own, sizeof own, pids.data());
  std::string left;
  if (context.rank() == 0) {
    for (const auto& name : names()) {
      if (before.count(name) != 0 || !stays(name)) continue;
      const auto is_in_name = [&](pid_t pid) {
        return pid > 99 && std::regex_search(name, std::regex("\\b" + std::to_string(pid) + "\\b"));
      };
      if (std::ranges::any_of(pids, is_in_name)) context.fail("left " + name + kBelongs);
      if (left.empty()) left = name;
    }
  }
  const char found = left.empty() ? 0 : 1;
  std::vector<char> all(static_cast<std::size_t>(context.size()));
  context.ranks().allgather(&found, 1, all.data());
  return all.front() == 0 ? "" : context.rank() == 0 ? left : "a file";
}

// Other programs create files there too. So the plugin is to blame only if each round leaves one, and no pause of the
// same length does.
void leaves_no_file(Context& context) {
  constexpr int kRounds = 4;
  std::string left;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = Clock::now();
    left = file_left_by(context, [&] {
      const auto backend = context.join({});
      call_all(context, *backend, 2);
      context.ranks().meet();
    });
    if (left.empty()) return;
    const auto time = Clock::now() - begin;
    if (!file_left_by(context, [&] { std::this_thread::sleep_for(time); }).empty()) return;
  }
  if (context.rank() != 0) return;
  context.fail("left " + left + ", and a file in each of " + std::to_string(kRounds - 1) + " rounds before" + kBelongs);
}

}  // namespace

void add_process_cases(const World& world, std::vector<Case>& cases) {
  cases.push_back({"process", "process: joining and leaving again and again leaves nothing open",
                   [as = world.as](Context& context) { join_and_leave(context, as); }});
  cases.push_back({"process", "process: collectives leave nothing open and no memory",
                   [as = world.as](Context& context) { holds_nothing_more(context, as); }});
  // Of threads, another rank may be in the middle of something.
  if (world.as == As::threads) return;
  cases.push_back({"process", "process: no file is left behind", leaves_no_file, kOwnWorld});
  cases.push_back({"process", "process: no CPU is used while nothing is called", rests, kOwnWorld});
  cases.push_back({"process", "process: nothing is printed", prints_nothing, kOwnWorld});
  cases.push_back({"process", "process: settings of the process stay as they are", changes_no_setting, kOwnWorld});
}

}  // namespace ddprun::conformance
