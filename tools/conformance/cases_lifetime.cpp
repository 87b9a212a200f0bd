// The creation and destruction of communicators.
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>

#include "tools/conformance/collective.hpp"
#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {
namespace {

std::ptrdiff_t entries_of(const char* folder) {
  std::error_code gone;  // an entry may disappear meanwhile
  std::ptrdiff_t count = 0;
  for (std::filesystem::directory_iterator at(folder, gone), end; !gone && at != end; at.increment(gone)) ++count;
  return count;
}

// Counts open descriptors and threads of this process. Ranks count one after another, because counting opens one.
struct Held {
  std::ptrdiff_t descriptors = 0;
  std::ptrdiff_t threads = 0;
};
Held held_now(Context& context) {
  Held held;
  for (int turn = 0; turn < context.size(); ++turn) {
    context.ranks().meet();
    if (turn == context.rank()) held = {entries_of("/proc/self/fd"), entries_of("/proc/self/task")};
  }
  context.ranks().meet();
  return held;
}

void join_and_leave(Context& context) {
  const auto cycle = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const auto backend = context.join({});
      context.wait(backend->barrier());
      context.ranks().meet();
    }
  };
  cycle(3);  // a library may keep what it opens first
  const Held before = held_now(context);
  constexpr int kCycles = 8;
  cycle(kCycles);
  std::this_thread::sleep_for(milliseconds(100));  // for threads that are about to end
  const Held after = held_now(context);
  const auto judge_growth = [&](const char* what, std::ptrdiff_t from, std::ptrdiff_t to) {
    if (to - from < kCycles) return;
    context.fail(std::to_string(from) + " " + what + " became " + std::to_string(to) + " while " +
                 std::to_string(kCycles) + " communicators were created and destroyed");
  };
  judge_growth("descriptors", before.descriptors, after.descriptors);
  judge_growth("threads", before.threads, after.threads);
}

// A rank that has its result may leave while others still read theirs.
void leave_at_once(Context& context) {
  for (const auto& algorithm : algorithms_of(context.settings())) {
    for (uint64_t i = 0; i < 8; ++i) {
      const TestCall what{.dtype = common_dtype(context.settings(), algorithm),
                          .op = common_op(context.settings(), algorithm),
                          .count = i % 2 == 0 ? std::size_t{3} : std::size_t{100'000}};
      const auto backend = context.join({.algorithm = algorithm});
      const std::string fault = run_checked(context, *backend, what, i).fault;
      if (!fault.empty()) context.fail(fault);
    }
  }
}

}  // namespace

void add_lifetime_cases(std::vector<Case>& cases) {
  const auto add = [&](const std::string& name, std::function<void(Context&)> body) {
    cases.push_back({.group = "usage", .name = name, .body = std::move(body)});
  };
  add("joining and leaving again and again leaves nothing open", join_and_leave);
  add("leaving immediately after the last collective", leave_at_once);
}

}  // namespace ddprun::conformance
