// What a plugin does with the buffers, the ddprun_collective and the request of a call.
#include "tools/conformance/suite.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tools/conformance/collective.hpp"

namespace ddprun::conformance {
namespace {

constexpr milliseconds kWhile{20};  // for what a plugin does later, and should not do

std::vector<TestCall> all_kinds(Context& context, std::size_t count) {
  TestCall like = common_call(context.settings(), "auto", count);
  like.root = context.size() - 1;
  return calls_of_each_kind(context.settings(), like);
}

// After wait the buffers are the caller's again: nothing writes them, and what a slower rank gets was read before.
void returns_buffers(Context& context) {
  for (const std::size_t count : {std::size_t{5}, std::size_t{1'000}, std::size_t{50'000}}) {
    for (TestCall what : all_kinds(context, count)) {
      what.overwrite_after = kWhile;
      context.judge(run_checked(context, context.shared(), what, 31 + count).fault,
                    std::string(name_of(what.kind)) + ": ");
    }
  }
  context.ranks().meet();  // a rank may be done while others still exchange
}

// After the call the ddprun_collective is the caller's again. It then shows other buffers, which nothing may write.
void copies_the_call(Context& context) {
  constexpr std::size_t kCount = 1'000;
  constexpr unsigned char kPattern = 0x5A;
  for (const TestCall& what : all_kinds(context, kCount)) {
    if (what.kind == Kind::exchange) continue;  // another struct
    const std::size_t bytes = kCount * size_of(what.dtype) * static_cast<std::size_t>(context.size());
    std::vector<unsigned char> other_send(bytes), other_recv(bytes, kPattern);
    spy::change_after_call([&](ddprun_collective& call) {
      call.send = other_send.data();
      call.recv = other_recv.data();
    });
    const auto checked = run_checked(context, context.shared(), what, 77);
    spy::change_after_call(nullptr);
    if (checked.fault.empty() && std::ranges::count(other_recv, kPattern) == std::ssize(other_recv)) continue;
    context.fail(std::string(name_of(what.kind)) + ": the plugin read its ddprun_collective after the call");
  }
}

// Who reads beyond the end of send, or changes it meanwhile, is killed by SIGSEGV.
void only_reads_send(Context& context) {
  for (const std::size_t count : {std::size_t{5}, std::size_t{1'001}, std::size_t{50'003}}) {
    for (const TestCall& what : all_kinds(context, count)) {
      if (what.kind == Kind::broadcast) continue;  // it has no send
      const Counts counts = counts_of(context, what);
      const PageEnd send(counts.send * size_of(what.dtype));
      Guarded recv(counts.recv * size_of(what.dtype), size_of(what.dtype));
      send.forbid_writing();
      context.wait(
          start(context.shared(), what, context.memory().call(send.data(), recv.data(), count, what.dtype, what.op)));
    }
  }
  context.ranks().meet();  // as above
}

// The plugin knows the size of each struct, and so where it ends.
void knows_struct_sizes(Context& context) {
  spy::put_structs_at_ends(true);
  {
    const auto backend = context.join({});
    for (const TestCall& what : all_kinds(context, 1'000)) {
      run_plain(context, *backend, what, context.settings().deadline);
    }
    context.wait(backend->barrier());
    context.ranks().meet();
  }
  spy::put_structs_at_ends(false);
}

// After a failed wait the buffers are the caller's too, also when the rank that was missing comes at last.
void returns_buffers_after_failure(Context& context) {
  constexpr unsigned char kPattern = 0x3C;
  const auto limit = context.settings().fault_deadline;
  const auto backend = context.join({.deadline = limit});
  const TestCall what = common_call(context.settings(), "auto", 50'000);
  Buffer buffer(context.memory(), what.count * size_of(what.dtype));
  const auto run = [&] {
    buffer.put();
    backend->allreduce(context.memory().call(buffer.at(0), buffer.at(0), what.count, what.dtype, what.op)).wait(limit);
  };
  context.ranks().meet();
  if (!context.is_last()) end_of(run);
  std::fill_n(buffer.data(), buffer.bytes(), kPattern);
  buffer.put();
  const auto before = buffer.copy();
  context.ranks().meet();
  if (context.is_last()) end_of(run);
  std::this_thread::sleep_for(kWhile);
  context.ranks().meet();
  buffer.get();
  if (!context.is_last() && !buffer.holds(before)) context.fail("wrote into a buffer after wait had failed");
}

// The last rank comes later than the others: until then no request may be done.
void test_is_true(Context& context) {
  CommBackend& backend = context.shared();  // all ranks join it here
  Buffers vector(context, common_call(context.settings(), "auto", 1'000));
  vector.fill(3);
  std::unique_ptr<Work> work;
  bool early = false;
  if (!context.is_last()) {
    work = std::make_unique<Work>(vector.start(backend));
    early = is_done_within(kWhile, *work);
  }
  context.ranks().meet();
  if (context.is_last()) work = std::make_unique<Work>(vector.start(backend));
  if (early) context.fail("test said 1 before all ranks had called");
  // A plugin whose test never says 1 still gives its result to wait.
  if (!is_done_within(context.settings().deadline / 4, *work)) {
    context.fail("test never said 1, although all ranks had called");
  }
  context.wait(std::move(*work));
}

// A wait may end before the deadline of the communicator.
void wait_keeps_its_timeout(Context& context) {
  constexpr milliseconds kTimeout{300};
  const auto backend = context.join({});
  context.ranks().meet();
  const auto calls = all_kinds(context, 1'000);
  if (!context.is_last()) {
    const End end = end_of([&] { run_plain(context, *backend, calls.front(), kTimeout); });
    context.judge_time("wait with a timeout of " + text_of(kTimeout), end.took,
                       kTimeout + context.settings().at_once());
    if (!end.names("timeout") && !end.names("peer lost")) {
      context.fail("expected timeout, got: " + (end.threw ? end.text : "no error"));
    }
  }
  context.ranks().meet();
}

}  // namespace

void add_request_cases(const World& world, std::vector<Case>& cases) {
  cases.push_back({"requests", "requests: the buffers are the caller's again after wait", returns_buffers});
  const Capabilities& can = world.settings.capabilities;
  if (world.settings.memory == Memory::host) {
    cases.push_back({"requests", "requests: a ddprun_collective is not read after the call", copies_the_call});
    cases.push_back({"requests", "requests: send is only read, and not beyond its end", only_reads_send, kOwnWorld});
  }
  cases.push_back({"requests", "requests: no struct is used beyond its size", knows_struct_sizes, kOwnWorld});
  if (world.size > 1 && !can.stream_ordered) {  // on a stream, wait only orders
    cases.push_back({"requests", "requests: the buffers are the caller's again after a failed wait",
                     returns_buffers_after_failure, kOwnWorld});
  }
  if (can.blocking || can.stream_ordered || world.size == 1) return;
  cases.push_back({"requests", "requests: test says 1 exactly if wait would return at once", test_is_true});
  cases.push_back({"requests", "requests: wait ends at its own timeout", wait_keeps_its_timeout, kOwnWorld});
}

}  // namespace ddprun::conformance
