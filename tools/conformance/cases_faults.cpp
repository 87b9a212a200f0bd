// The behaviour of the other ranks when a rank is missing, when they are aborted, and when a rank dies. The faulty rank
// is always the last one. Each case has its own world, because none can be used afterwards.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <regex>
#include <thread>

#include "tools/conformance/collective.hpp"
#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {
namespace {

constexpr milliseconds kBefore{150};  // an abort or a death: the others are blocked by then

// A collective that cannot end without the last rank.
struct Victim {
  std::string name;
  std::string algorithm;
  TestCall what;
};

std::vector<Victim> victims(const World& world) {
  const Settings& settings = world.settings;
  std::vector<Victim> all;
  const auto add = [&](const std::string& algorithm, Kind kind) {
    TestCall what = common_call(settings, algorithm, 10'000);
    what.kind = kind;
    what.root = world.size - 1;
    all.push_back({std::string(name_of(kind)) + " " + algorithm, algorithm, what});
  };
  add("auto", Kind::allreduce);
  if (!world.thorough) return all;
  for (const auto& algorithm : settings.capabilities.algorithms) add(algorithm.name, Kind::allreduce);
  for (const TestCall& one : calls_of_each_kind(settings, {})) {
    if (one.kind != Kind::allreduce) add("auto", one.kind);
  }
  add("auto", Kind::barrier);
  return all;
}

// The call must have ended soon enough with an error that names the peers (5).
void judge(Context& context, const End& end, milliseconds latest, const std::string& what = "the call") {
  if (!end.threw) return context.fail(what + " ended without an error");
  if (end.code != ExitCode::peer) {
    context.fail(what + ": expected timeout, peer lost or aborted (exit code 5), got exit code " +
                 std::to_string(static_cast<int>(end.code)) + ": " + end.text);
  }
  context.judge_time(what, end.took, latest);
}

// If the call has thrown, what it threw must be as expected.
void expect(Context& context, const End& end, const std::string& expected, bool is_so, const std::string& where = "") {
  if (end.threw && !is_so) context.fail(where + "expected " + expected + ", got: " + end.text);
}

// After a failure, every call but abort and destroy fails at once.
End judge_later(Context& context, CommBackend& backend, const Victim& victim) {
  const End later = end_of(context, backend, victim.what);
  judge(context, later, context.settings().at_once(), "a later call");
  return later;
}

// "rank 2" in a text, for any rank but `self`.
bool names_another(const std::string& text, int self) {
  static const std::regex name("rank ([0-9]+)");
  for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) {
    if ((*at)[1] != std::to_string(self)) return true;
  }
  return false;
}

// The last rank is dead: peer lost, with the name of a rank. Of more than two ranks, one may first notice that another
// one has given up.
void judge_death(Context& context, const End& end) {
  judge(context, end, context.settings().at_once());
  const auto at = end.text.find("peer lost: ");
  if (at == std::string::npos) return context.fail("expected peer lost, got: " + end.text);
  if (!names_another(end.text.substr(at), context.rank())) {
    context.fail("expected the name of the rank that was lost, got: " + end.text);
  }
}

void deadline(Context& context, const Victim& victim, milliseconds limit) {
  context.ranks().meet();  // the deadline also applies to joining: all ranks must have started
  const auto backend = context.join({.algorithm = victim.algorithm, .deadline = limit});
  context.ranks().meet();
  if (!context.is_last()) {
    const End end = end_of([&] { run_plain(context, *backend, victim.what, limit); });
    judge(context, end, limit + context.settings().at_once());
    // A quarter: the first rank to give up ends its neighbours too, even one that entered the call later.
    if (end.threw && end.took < limit / 4) {
      context.fail("gave up after " + text_of(end.took) + " of " + text_of(limit) + ": " + end.text);
    }
    expect(context, end, "timeout or peer lost", end.names("timeout") || end.names("peer lost"));
    judge_later(context, *backend, victim);
  }
  context.ranks().meet();
}

// A communicator may live for days: its deadline counts from each call.
void deadline_of_each_call(Context& context, const Victim& victim) {
  const auto limit = context.settings().fault_deadline;
  const auto backend = context.join({.deadline = limit});
  for (int call = 0; call < 2; ++call) {
    std::this_thread::sleep_for(limit * 3 / 4);
    context.ranks().meet();
    const End end = end_of([&] { run_plain(context, *backend, victim.what, limit); });
    if (end.threw) context.fail("call " + std::to_string(call) + ", before its deadline: " + end.text);
  }
  context.ranks().meet();
}

// ddprun does both at once; each must be enough.
enum class AbortBy { call, flag };

void abort_blocked(Context& context, const Victim& victim, AbortBy by) {
  const auto flag = std::make_shared<std::atomic<int32_t>>(0);
  const auto backend = context.join({.algorithm = victim.algorithm, .abort_flag = flag});
  ddprun_comm* const handle = spy::last_joined();
  const auto& table = *context.settings().plugin.table;
  context.ranks().meet();
  if (!context.is_last()) {
    std::thread other([&] {
      std::this_thread::sleep_for(kBefore);
      if (by == AbortBy::flag) {
        *flag = 1;
      } else {
        table.abort(handle);
        table.abort(handle);  // any number of times
      }
    });
    const End end = end_of(context, *backend, victim.what);
    other.join();
    judge(context, end, kBefore + context.settings().at_once());
    // A neighbour that was aborted first may already have left.
    expect(context, end, "aborted", end.names("aborted") || end.names("peer lost"));
    const End later = judge_later(context, *backend, victim);
    expect(context, later, "aborted", later.names("aborted"), "a later call: ");
  }
  context.ranks().meet();
}

void abort_idle(Context& context) {
  const auto backend = context.join({});
  context.ranks().meet();
  backend->abort();
  const End end = end_of(context, *backend, {.kind = Kind::barrier});
  judge(context, end, context.settings().at_once());
  expect(context, end, "aborted", end.names("aborted"));
}

[[noreturn]] void die() {
  raise(SIGKILL);
  std::abort();
}

// The last rank dies while the others wait for it.
void death_while_awaited(Context& context, const Victim& victim) {
  const auto backend = context.join({.algorithm = victim.algorithm});
  context.ranks().meet();
  if (context.is_last()) {
    std::this_thread::sleep_for(kBefore);
    die();
  }
  End end = end_of(context, *backend, victim.what);
  end.took -= std::min(end.took, kBefore);
  judge_death(context, end);
  judge_later(context, *backend, victim);
}

// The last rank dies somewhere in a stream of collectives.
void death_amid(Context& context, const Victim& victim) {
  const auto backend = context.join({.algorithm = victim.algorithm});
  context.ranks().meet();
  std::thread clock([&] {
    std::this_thread::sleep_for(kBefore);
    if (context.is_last()) die();
  });
  TestCall what = victim.what;
  what.count = 100'000;
  const auto give_up = Clock::now() + context.settings().deadline;
  End end;
  while (!end.threw && Clock::now() < give_up) {
    end = end_of(context, *backend, what);
  }
  clock.join();
  judge_death(context, end);
}

// The last rank has published its address, and dies before another rank connects.
void death_while_joining(Context& context) {
  const auto limit = context.settings().fault_deadline;
  int gathers = 0;
  const End end = end_of([&] {
    context.join({.deadline = limit, .before_gather = [&] {
                    if (++gathers == 2 && context.is_last()) die();
                  }});
    if (context.is_last()) die();
  });
  if (context.is_last()) die();
  context.judge_time("create", end.took, limit + context.settings().at_once());
}

}  // namespace

void add_fault_cases(const World& world, std::vector<Case>& cases) {
  const auto add = [&](const std::string& group, const std::string& name, std::function<void(Context&)> body) {
    cases.push_back({group, group + ": " + name, std::move(body), kOwnWorld, group == "death"});
  };
  add("abort", "every call after it is refused", abort_idle);
  if (world.size == 1) return;
  // Another launcher ends the job when a rank dies.
  const bool can_kill = world.as == testing::As::processes && world.settings.job == nullptr;
  const auto all = victims(world);
  const milliseconds limit = world.settings.fault_deadline;
  add("deadline", "it counts from each call", [=](Context& context) { deadline_of_each_call(context, all.front()); });
  if (world.thorough) {  // so long that twice as long is too long
    add("deadline", "a long one", [=](Context& context) { deadline(context, all.front(), 4 * limit); });
  }
  for (const auto& victim : all) {
    add("deadline", victim.name + ", one rank stays away", [=](Context& context) { deadline(context, victim, limit); });
    add("abort", victim.name + ", blocked", [=](Context& context) { abort_blocked(context, victim, AbortBy::call); });
    add("abort", victim.name + ", blocked, by the host's flag",
        [=](Context& context) { abort_blocked(context, victim, AbortBy::flag); });
    if (!can_kill) continue;
    add("death", victim.name + ", while the others wait for it",
        [=](Context& context) { death_while_awaited(context, victim); });
    if (victim.what.kind != Kind::allreduce) continue;
    add("death", victim.name + ", during a stream of calls", [=](Context& context) { death_amid(context, victim); });
  }
  if (can_kill) add("death", "while joining", death_while_joining);
}

}  // namespace ddprun::conformance
