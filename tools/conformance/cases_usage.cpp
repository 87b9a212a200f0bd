// The use of a communicator: several at once, repeatedly, with no data, with unsupported requests.
#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "tools/conformance/collective.hpp"
#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {
namespace {

// A float reduction and a byte movement that every backend supports; several cases mix them.
std::vector<TestCall> mixed_calls(const Settings& settings, const std::string& algorithm, int size, int rounds) {
  const auto kinds = calls_of_each_kind(settings, common_call(settings, algorithm, 0));
  std::vector<TestCall> calls;
  for (int round = 0; round < rounds; ++round) {
    TestCall& what = calls.emplace_back(kinds[static_cast<std::size_t>(round) % kinds.size()]);
    what.count = static_cast<std::size_t>(round * 37 % 211);
    what.root = round % size;
    what.in_place = round % 2 == 1;
  }
  return calls;
}

// Runs all calls, even if one fails, and returns the first error.
std::string run_all(Context& context, CommBackend& backend, const std::vector<TestCall>& calls, uint64_t seed) {
  std::string fault;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Checked checked = run_checked(context, backend, calls[i], seed + i * 1000);
    if (!fault.empty() || checked.fault.empty()) continue;
    fault =
        "call " + std::to_string(i) + " (" + name_of(calls[i].kind) + " " + describe(calls[i]) + "): " + checked.fault;
  }
  return fault;
}

// "" if it throws Error(plugin), as every unsupported request must.
std::string must_refuse(const std::string& what, const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    if (error.code() == ExitCode::plugin) return "";
    return what + " was refused with the wrong kind of error: " + error.what();
  }
  return what + " was not refused";
}

// Ranks that share a GPU use it one after another, so each call takes milliseconds.
void many_small(Context& context) {
  const int rounds = context.settings().memory == Memory::host ? 300 : 100;
  for (const auto& algorithm : algorithms_of(context.settings())) {
    const auto calls = mixed_calls(context.settings(), algorithm, context.size(), rounds);
    context.judge(run_all(context, context.shared(algorithm), calls, 11));
  }
}

void several_under_way(Context& context) {
  auto& backend = context.shared();
  std::deque<Buffers> vectors;
  std::vector<Work> works;
  for (uint64_t i = 0; i < 4; ++i) {
    vectors.emplace_back(context, common_call(context.settings(), "auto", 5000)).fill(i);
    works.push_back(vectors.back().start(backend));
  }
  for (const std::size_t i : {2, 0, 3, 1}) {  // in any order
    is_done_within(context.settings().deadline, works[i]);
    context.wait(std::move(works[i]));
    context.judge(vectors[i].fault(), "request " + std::to_string(i) + ", ");
  }
}

void two_communicators(Context& context) {
  std::string faults[2];
  const auto work = [&](int which) {
    try {
      const auto backend = context.join({.channel = 1 + which});
      const auto calls = mixed_calls(context.settings(), "auto", context.size(), which == 0 ? 150 : 120);
      faults[which] = run_all(context, *backend, calls, 100'000 * static_cast<uint64_t>(which + 1));
      context.ranks().meet(1 + which);  // leave together, so that no rank reports a lost peer
    } catch (const std::exception& error) {
      faults[which] = error.what();
    }
    for (const std::string& fault : spy::take_faults()) faults[which].append(" ").append(fault);
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  for (int which = 0; which < 2; ++which) {
    context.judge(faults[which], "communicator " + std::to_string(which) + ": ");
  }
}

void null_when_empty(Context& context) {
  auto& backend = context.shared();
  for (const TestCall& what : calls_of_each_kind(context.settings(), common_call(context.settings(), "auto", 0))) {
    const Collective nothing = context.memory().call(nullptr, nullptr, 0, what.dtype, what.op);
    context.wait(start(backend, what, nothing));
  }
}

void refuses_undeclared(Context& context) {
  for (const auto& algorithm : algorithms_of(context.settings())) {
    auto& backend = context.shared(algorithm);
    for (const DType dtype : kDTypes) {
      for (const Op op : kOps) {
        if (takes(context.settings(), algorithm, dtype, op)) continue;
        const Buffers vector(context, {.dtype = dtype, .op = op, .count = 1, .in_place = true});
        context.judge(must_refuse(algorithm + " allreduce " + name_of(op) + " of " + name_of(dtype),
                                  [&] { vector.run(backend); }));
      }
    }
    context.wait(backend.barrier());  // the communicator must still work after a refusal
  }
}

void refuses_unknown_option(Context& context) {
  context.judge(must_refuse("the option no_such_option", [&] { context.join({.extra = {{"no_such_option", "1"}}}); }));
}

// Five times the same numbers, on two communicators created with `deterministic`: the bits are the same.
void repeats(Context& context, const std::string& algorithm, Kind kind) {
  TestCall what = common_call(context.settings(), algorithm, 65'537);
  what.kind = kind;
  std::vector<unsigned char> first;
  for (int joined = 0; joined < 2; ++joined) {
    const auto backend = context.join({.algorithm = algorithm, .deterministic = true});
    for (int run = 0; run < 5; ++run) {
      Buffers buffers(context, what);
      buffers.fill(5);
      buffers.run(*backend);
      context.judge(buffers.fault());
      const std::vector<unsigned char> result(buffers.recv(), buffers.recv() + what.count * size_of(what.dtype));
      if (first.empty()) first = result;
      if (result != first) context.fail("run " + std::to_string(joined * 5 + run) + " differs from the first");
    }
    context.ranks().meet();
  }
  if (kind == Kind::allreduce) context.judge_same(what.dtype, first.data(), what.count);
}

// Two communicators are independent: one that has been aborted does not disturb the other.
void fails_alone(Context& context) {
  const auto sound = context.join({}), failing = context.join({});
  context.ranks().meet();
  failing->abort();
  const End end = end_of(context, *failing, {.kind = Kind::barrier});
  if (!end.threw) context.fail("a barrier of the aborted communicator ended without an error");
  context.judge(run_all(context, *sound, mixed_calls(context.settings(), "auto", context.size(), 20), 500));
  context.ranks().meet();
}

// For algorithms that need memory from alloc; the other cases use other memory.
std::vector<std::string> algorithms_from_alloc(const Settings& settings) {
  std::vector<std::string> names;
  for (const auto& algorithm : comm::capabilities_of(*settings.plugin.table).algorithms) {
    if (algorithm.from_alloc && algorithm.takes(settings.memory)) names.push_back(algorithm.name);
  }
  return names;
}

void allocated_memory(Context& context, const std::string& algorithm) {
  auto& backend = context.shared(algorithm);
  for (const std::size_t count : {std::size_t{1}, std::size_t{100'000}}) {
    TestCall what = common_call(context.settings(), "auto", count);
    what.in_place = true;
    auto memory = backend.allocate(count * size_of(what.dtype));
    if (reinterpret_cast<std::uintptr_t>(memory.get()) % 4096 != 0) context.fail("the memory is not page-aligned");
    Buffers vector(context, what, memory.get());
    vector.fill(9);
    const auto served = vector.run(backend);
    if (algorithm != "auto" && served.algorithm != algorithm) {
      return context.fail(std::string("served by ") + served.algorithm);
    }
    context.judge(vector.fault());
    std::thread([&] { memory.reset(); }).join();  // any thread may free it
    if (algorithm == "auto") continue;
    const Buffers other(context, what);
    context.judge(must_refuse(algorithm + " allreduce of memory that is not from alloc", [&] { other.run(backend); }));
  }
}

}  // namespace

void add_usage_cases(const World& world, std::vector<Case>& cases) {
  const Settings& settings = world.settings;
  const auto add = [&](const std::string& name, std::function<void(Context&)> body) {
    cases.push_back({"usage", name, std::move(body)});
  };
  add("hundreds of small collectives in a row, of varying sizes and kinds", many_small);
  add("four allreduces in flight at once", several_under_way);
  // Not on streams: libraries may not support two active communicators on one GPU, because the kernels of each wait for
  // peers and can block those of the other (NCCL's guide, "Using multiple NCCL communicators concurrently").
  if (!settings.capabilities.stream_ordered) {
    add("two communicators at once, from two threads", two_communicators);
    cases.push_back({"usage", "an aborted communicator does not disturb another one", fails_alone, kOwnWorld});
  }
  add("null buffers with count 0", null_when_empty);
  add("what is not declared is refused", refuses_undeclared);
  add("an unknown option is refused", refuses_unknown_option);
  for (const auto& algorithm : algorithms_of(settings)) {
    add("ten deterministic runs under " + algorithm + " give the same bits",
        [=](Context& context) { repeats(context, algorithm, Kind::allreduce); });
  }
  if (settings.capabilities.reduce_scatter) {
    add("ten deterministic runs of reduce_scatter give the same bits",
        [](Context& context) { repeats(context, "auto", Kind::reduce_scatter); });
  }
  if (settings.capabilities.alloc) {
    add("memory that the backend allocates", [](Context& context) { allocated_memory(context, "auto"); });
    for (const auto& algorithm : algorithms_from_alloc(settings)) {
      add("memory that the backend allocates under " + algorithm,
          [=](Context& context) { allocated_memory(context, algorithm); });
    }
  }
}

}  // namespace ddprun::conformance
