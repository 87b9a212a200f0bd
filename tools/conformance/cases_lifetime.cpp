// The creation and destruction of communicators.
#include <atomic>
#include <chrono>
#include <cstddef>
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
      const TestCall what{.dtype = common_dtype(context.settings(), algorithm),
                          .op = common_op(context.settings(), algorithm),
                          .count = i % 2 == 0 ? std::size_t{3} : std::size_t{100'000}};
      const auto backend = context.join({.algorithm = algorithm});
      const std::string fault = run_checked(context, *backend, what, i).fault;
      if (!fault.empty()) context.fail(fault);
    }
  }
}

std::chrono::milliseconds since(Clock::time_point start) {
  return std::chrono::duration_cast<milliseconds>(Clock::now() - start);
}

// The peers keep their communicators and call nothing, while one rank after another leaves.
void leaves_alone(Context& context) {
  auto backend = context.join({});
  context.wait(backend->barrier());
  for (int leaver = context.size() - 1; leaver >= 0; --leaver) {
    context.ranks().meet();
    if (leaver != context.rank()) continue;
    const auto start = Clock::now();
    backend.reset();
    context.judge_time("destroy, while the peers stay,", since(start), context.settings().at_once());
  }
  context.ranks().meet();
}

enum class EndBy { deadline, flag };

// The last rank answers every out-of-band gather of create, and then does nothing until the others have ended.
void peer_never_connects(Context& context, EndBy by) {
  constexpr milliseconds kBefore{150};
  int all = 0, gathers = 0;
  context.join({.after_gather = [&] { ++all; }}).reset();
  const auto limit = by == EndBy::flag ? context.settings().deadline : context.settings().fault_deadline;
  const auto flag = std::make_shared<std::atomic<int32_t>>(0);
  context.ranks().meet();
  const auto start = Clock::now();
  std::thread other([&] {
    if (by != EndBy::flag || context.is_last()) return;
    std::this_thread::sleep_for(kBefore);
    *flag = 1;
  });
  try {
    context.join({.deadline = limit,
                  .after_gather =
                      [&] {
                        if (++gathers != all || !context.is_last()) return;
                        context.ranks().meet(1);
                        throw Error(ExitCode::rendezvous, "the case ends here");
                      },
                  .abort_flag = flag});
  } catch (const Error&) {  // or joined: a backend need not connect while it joins
  }
  const auto took = since(start);
  other.join();
  if (context.is_last() && gathers == all && all > 0) return;
  context.ranks().meet(1);
  const bool by_flag = by == EndBy::flag;
  context.judge_time(by_flag ? "create, aborted by the host's flag,"
                             : "create with a deadline of " + std::to_string(limit.count()) + " ms",
                     took, (by_flag ? kBefore : limit) + context.settings().at_once());
}

}  // namespace

Case joining_case() {
  const auto body = [](Context& context) {
    const auto backend = context.join({});
    context.ranks().meet();
  };
  return {.group = "lifetime", .name = "lifetime: all ranks join", .body = body, .own_world = true, .required = true};
}

void add_lifetime_cases(int size, std::vector<Case>& cases) {
  const auto add = [&](const std::string& name, std::function<void(Context&)> body) {
    cases.push_back({.group = "usage", .name = name, .body = std::move(body)});
  };
  add("leaving immediately after the last collective", leave_at_once);
  if (size == 1) return;
  const auto add_own = [&](const std::string& name, std::function<void(Context&)> body) {
    cases.push_back({.group = "lifetime", .name = "lifetime: " + name, .body = std::move(body), .own_world = true});
  };
  add_own("destroy does not wait for a peer", leaves_alone);
  add_own("create ends at its deadline if a peer gathers and never connects",
          [](Context& context) { peer_never_connects(context, EndBy::deadline); });
  add_own("create ends at once if the host's flag is raised",
          [](Context& context) { peer_never_connects(context, EndBy::flag); });
}

}  // namespace ddprun::conformance
