// The creation and destruction of communicators.
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "tools/conformance/collective.hpp"
#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {
namespace {

// A rank that has its result may leave while others still read theirs.
void leave_at_once(Context& context) {
  for (const auto& algorithm : algorithms_of(context.settings())) {
    for (uint64_t i = 0; i < 8; ++i) {
      const TestCall what = common_call(context.settings(), algorithm, i % 2 == 0 ? 3 : 100'000);
      const auto backend = context.join({.algorithm = algorithm});
      context.judge(run_checked(context, *backend, what, i).fault);
    }
  }
}

// The peers keep their communicators and call nothing, while one rank after another leaves.
void leaves_alone(Context& context) {
  auto backend = context.join({});
  context.wait(backend->barrier());
  for (int leaver = context.size() - 1; leaver >= 0; --leaver) {
    context.ranks().meet();
    if (leaver != context.rank()) continue;
    const End end = end_of([&] { backend.reset(); });
    context.judge_time("destroy, while the peers stay,", end.took, context.settings().at_once());
  }
  context.ranks().meet();
}

enum class EndBy { deadline, flag };

// The last rank answers every out-of-band gather of create, and then does nothing until the others have ended.
void peer_never_connects(Context& context, EndBy by) {
  constexpr milliseconds kBefore{150};
  int all = 0, gathers = 0;
  context.join({.after_gather = [&] { ++all; }}).reset();
  const bool by_flag = by == EndBy::flag;
  const auto limit = by_flag ? context.settings().deadline : context.settings().fault_deadline;
  const auto flag = std::make_shared<std::atomic<int32_t>>(0);
  const auto stay_away = [&] {
    if (++gathers != all || !context.is_last()) return;
    context.ranks().meet(1);
    throw Error(ExitCode::rendezvous, "the case ends here");
  };
  context.ranks().meet();
  std::thread other([&] {
    if (!by_flag || context.is_last()) return;
    std::this_thread::sleep_for(kBefore);
    *flag = 1;
  });
  // It may also join: a backend need not connect while it joins.
  const End end = end_of([&] { context.join({.deadline = limit, .after_gather = stay_away, .abort_flag = flag}); });
  other.join();
  if (context.is_last() && gathers == all && all > 0) return;
  context.ranks().meet(1);
  context.judge_time(by_flag ? "create, aborted by the host's flag," : "create with a deadline of " + text_of(limit),
                     end.took, (by_flag ? kBefore : limit) + context.settings().at_once());
}

}  // namespace

Case joining_case() {
  const auto body = [](Context& context) {
    const auto backend = context.join({});
    context.ranks().meet();
  };
  return {.group = "lifetime", .name = "lifetime: all ranks join", .body = body, .own_world = true, .required = true};
}

void add_lifetime_cases(const World& world, std::vector<Case>& cases) {
  cases.push_back({"usage", "leaving immediately after the last collective", leave_at_once});
  if (world.size == 1) return;
  cases.push_back({"lifetime", "lifetime: destroy does not wait for a peer", leaves_alone, kOwnWorld});
  cases.push_back({"lifetime", "lifetime: create ends at its deadline if a peer gathers and never connects",
                   [](Context& context) { peer_never_connects(context, EndBy::deadline); }, kOwnWorld});
  cases.push_back({"lifetime", "lifetime: create ends at once if the host's flag is raised",
                   [](Context& context) { peer_never_connects(context, EndBy::flag); }, kOwnWorld});
}

}  // namespace ddprun::conformance
