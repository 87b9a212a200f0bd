// What the host's adapter refuses before it calls a plugin, and what it accepts.
#include <doctest/doctest.h>

#include <array>
#include <functional>

#include "ddprun/plugin/comm_plugin.hpp"
#include "joined.hpp"
#include "support/error_of.hpp"

namespace ddprun::comm {
namespace {

using testing::error_of;

int calls = 0;
std::function<void()> on_async_error = [] {};

class Counting final : public CommBackend {
 public:
  explicit Counting(const Host& host) : CommBackend(host) {}
  Work allreduce(const Collective&) override { return called(); }
  Work broadcast(const Collective&) override { return called(); }
  Work allgather(const Collective&) override { return called(); }
  Work reduce_scatter(const Collective&) override { return called(); }
  Work barrier() override { return called(); }
  Work exchange(const Exchange&) override { return called(); }
  void async_error() override { on_async_error(); }
  void abort() noexcept override {}

 private:
  Work called() {
    ++calls;
    return {*this, request_};
  }
  Request request_{{"ring", "paper"}};
};

// ring supports all, fast only sums of float32, host_only no CUDA memory.
constexpr ddprun_comm_algorithm kAlgorithms[] = {
    algorithm("ring", bits(DType::float32, DType::int32), kAllOps),
    algorithm("fast", bits(DType::float32), bits(Op::sum)),
    algorithm("host_only", bits(DType::float32, DType::uint8), kAllOps, bits(Memory::host)),
};
constexpr uint64_t kBlocking = DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING | DDPRUN_CAP_REDUCE_SCATTER | DDPRUN_CAP_EXCHANGE;
constexpr CommPluginInfo kHost = {"counting", "1", "", kBlocking, kAlgorithms};
constexpr CommPluginInfo kBoth = {"both", "1", "", kBlocking | DDPRUN_CAP_CUDA, kAlgorithms};
constexpr CommPluginInfo kLess = {"less", "1", "", DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING, kAlgorithms};
constexpr ddprun_comm_plugin kTable = comm_plugin<make_comm_backend<Counting>, kHost>();
constexpr ddprun_comm_plugin kBothTable = comm_plugin<make_comm_backend<Counting>, kBoth>();
constexpr ddprun_comm_plugin kLessTable = comm_plugin<make_comm_backend<Counting>, kLess>();

// Supports neither float32 nor sum, so an empty float32 allreduce cannot poll it for errors.
constexpr ddprun_comm_algorithm kMaxOfInt8[] = {algorithm("ring", bits(DType::int8), bits(Op::max))};
constexpr CommPluginInfo kStream = {"stream", "1", "", DDPRUN_CAP_CUDA | DDPRUN_CAP_STREAM_ORDERED, kMaxOfInt8};
constexpr ddprun_comm_plugin kStreamTable = comm_plugin<make_comm_backend<Counting>, kStream>();

// Rank 1 of 3.
std::unique_ptr<PluginBackend> join_middle(const ddprun_comm_plugin& table = kTable,
                                           const std::string& algorithm = "auto", int device = -1) {
  calls = 0;
  JoinOptions options = single_rank_options();
  options.rank = 1;
  options.size = 3;
  options.algorithm = algorithm;
  options.device = device;
  return join(table, options);
}

std::array<float, 12> memory;

// Two elements out of place, valid for every collective.
Collective good_call() {
  return {.send = memory.data(), .recv = memory.data() + 6, .count = 2};
}

std::string error_with(CommBackend& backend, Kind kind, const std::function<void(Collective&)>& change) {
  Collective call = good_call();
  change(call);
  return error_of([&] { start(backend, kind, call).wait(std::chrono::seconds(1)); });
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.ends_with(": " + end);
}

}  // namespace

TEST_CASE("arguments that break the contract never reach the plugin") {
  const auto backend = join_middle();
  const auto refused = [&](Kind kind, const std::string& why, const std::function<void(Collective&)>& spoil) {
    const std::string error = error_with(*backend, kind, spoil);
    CAPTURE(error);
    CHECK(error.starts_with("3: counting: rank 1: "));
    CHECK(ends_with(error, why));
  };
  refused(Kind::allreduce, "no such dtype", [](auto& c) { c.dtype = static_cast<DType>(kDTypeCount); });
  refused(Kind::allreduce, "no such dtype", [](auto& c) { c.dtype = static_cast<DType>(-1); });
  refused(Kind::allreduce, "no such op", [](auto& c) { c.op = static_cast<Op>(kOpCount); });
  refused(Kind::allreduce, "no such memory", [](auto& c) { c.memory = static_cast<Memory>(2); });
  refused(Kind::allreduce, "the backend takes no CUDA memory", [](auto& c) { c.memory = Memory::cuda; });
  refused(Kind::allreduce, "unsupported: no algorithm of counting takes sum of float64",
          [](auto& c) { c.dtype = DType::float64; });
  refused(Kind::allreduce, "avg is for floating types only", [](auto& c) { c.dtype = DType::int32, c.op = Op::avg; });
  refused(Kind::allreduce, "send is null", [](auto& c) { c.send = nullptr; });
  refused(Kind::allreduce, "recv is null", [](auto& c) { c.recv = nullptr; });
  const std::string overlap = "send and recv overlap, and not exactly in place";
  refused(Kind::allreduce, overlap, [](auto& c) { c.recv = memory.data() + 1; });
  refused(Kind::allgather, overlap, [](auto& c) { c.send = memory.data() + 9; });
  refused(Kind::reduce_scatter, overlap, [](auto& c) { c.recv = memory.data() + 4; });
  refused(Kind::allreduce, "count is too large", [](auto& c) { c.count = ~uint64_t{0} / 4; });
  refused(Kind::broadcast, "the group has ranks 0 to 2", [](auto& c) { c.root = 3; });
  refused(Kind::broadcast, "the group has ranks 0 to 2", [](auto& c) { c.root = -1; });
  CHECK(calls == 0);
}

TEST_CASE("valid arguments reach the plugin") {
  const auto backend = join_middle();
  const auto accepted = [&](Kind kind, const std::function<void(Collective&)>& change) {
    CHECK(error_with(*backend, kind, change) == "no error");
  };
  accepted(Kind::allreduce, [](auto& c) { c.recv = memory.data(); });
  accepted(Kind::allreduce, [](auto& c) { c.count = 0, c.send = c.recv = nullptr; });
  accepted(Kind::broadcast, [](auto& c) { c.send = nullptr, c.root = 2; });
  accepted(Kind::broadcast, [](auto& c) { c.dtype = DType::int8; });
  accepted(Kind::allgather, [](auto& c) { c.send = memory.data() + 8; });
  accepted(Kind::reduce_scatter, [](auto& c) { c.recv = memory.data() + 2; });
  accepted(Kind::barrier, [](auto& c) { c.dtype = static_cast<DType>(99), c.recv = nullptr; });
  CHECK(calls == 7);
}

TEST_CASE(
    "with a named algorithm, allreduce accepts what that algorithm declares, and reduce_scatter what any declares") {
  const auto backend = join_middle(kTable, "fast");
  const auto max = [](Collective& call) { call.op = Op::max; };
  CHECK(error_with(*backend, Kind::allreduce, [](auto&) {}) == "no error");
  CHECK(ends_with(error_with(*backend, Kind::allreduce, max),
                  "unsupported: algorithm \"fast\" of counting takes max of float32"));
  CHECK(error_with(*backend, Kind::reduce_scatter, max) == "no error");
}

TEST_CASE("an algorithm for host memory only is refused for CUDA memory") {
  const auto backend = join_middle(kBothTable, "ring", 0);
  const auto on_gpu = [](Collective& call) { call.memory = Memory::cuda; };
  CHECK(error_with(*backend, Kind::allreduce, on_gpu) == "no error");
  const auto bytes_on_gpu = [](Collective& call) { call.memory = Memory::cuda, call.dtype = DType::uint8; };
  CHECK(ends_with(error_with(*backend, Kind::reduce_scatter, bytes_on_gpu),
                  "unsupported: no algorithm of both takes sum of uint8"));
  CHECK(error_with(*backend, Kind::broadcast, bytes_on_gpu) == "no error");
  CHECK(error_of([] { join_middle(kBothTable, "host_only", 0); }).starts_with("3: both: comm.algorithm"));
}

TEST_CASE("reduce_scatter is never called on a plugin without it") {
  const auto backend = join_middle(kLessTable);
  CHECK_FALSE(backend->capabilities().reduce_scatter);
  CHECK(ends_with(error_with(*backend, Kind::reduce_scatter, [](auto&) {}), "unsupported: less has no reduce_scatter"));
  CHECK(calls == 0);
}

TEST_CASE("an exchange reaches the plugin if each rank has a block, and only empty ones are null") {
  const auto backend = join_middle();
  const auto error_of_blocks = [&](std::vector<Block> send, std::vector<Block> recv, Memory of = Memory::host) {
    return error_of([&] { backend->exchange({send, recv, of}).wait(std::chrono::seconds(1)); });
  };
  const Block some{memory.data(), 4}, none{nullptr, 0}, more{memory.data() + 6, 8};
  CHECK(error_of_blocks({some, none, more}, {none, none, some}) == "no error");
  CHECK(error_of_blocks({none, some, none}, {none, {memory.data() + 6, 4}, none}) == "no error");
  CHECK(calls == 2);
  const std::string three = "3: counting: rank 1: exchange 3: send and recv need one block for each rank";
  CHECK(error_of_blocks({some, none}, {none, none, none}) == three);
  CHECK(ends_with(error_of_blocks({some, none, none}, {none, none, none, none}),
                  "send and recv need one block for each rank"));
  CHECK(ends_with(error_of_blocks({none, none, {nullptr, 1}}, {none, none, none}), "a block is null"));
  CHECK(ends_with(error_of_blocks({none, none, none}, {{nullptr, 1}, none, none}), "a block is null"));
  CHECK(
      ends_with(error_of_blocks({none, some, none}, {none, more, none}), "this rank's block for itself has two sizes"));
  CHECK(ends_with(error_of_blocks({none, none, none}, {none, none, none}, Memory::cuda),
                  "the backend takes no CUDA memory"));
  CHECK(ends_with(error_of_blocks({none, none, none}, {none, none, none}, static_cast<Memory>(2)), "no such memory"));
  CHECK(calls == 2);
}

TEST_CASE("exchange is never called on a plugin without it, whatever is behind its table") {
  struct {
    ddprun_comm_plugin table = kLessTable;
  } old;
  old.table.struct_size = offsetof(ddprun_comm_plugin, exchange);
  old.table.exchange = [](ddprun_comm*, const ddprun_exchange*, ddprun_request**) -> ddprun_status { std::abort(); };
  const auto backend = join_middle(old.table);
  CHECK_FALSE(backend->capabilities().exchange);
  const std::vector<Block> none(3);
  CHECK(ends_with(error_of([&] { backend->exchange({none, none}); }), "unsupported: less has no exchange"));
}

TEST_CASE("options that break the contract never reach the plugin") {
  const auto refused = [](const std::function<void(JoinOptions&)>& spoil) {
    JoinOptions options = single_rank_options();
    spoil(options);
    return error_of([&] { join(kTable, options); }).starts_with("3: counting: ");
  };
  CHECK(refused([](auto& options) { options.rank = 1; }));
  CHECK(refused([](auto& options) { options.rank = -1; }));
  CHECK(refused([](auto& options) { options.size = 0; }));
  CHECK(refused([](auto& options) { options.deadline = std::chrono::milliseconds(0); }));
  CHECK(refused([](auto& options) { options.allgather = nullptr; }));
  CHECK(refused([](auto& options) { options.algorithm = "rign"; }));
  CHECK(refused([](auto& options) { options.device = 0; }));
}

TEST_CASE("a deadline beyond the table's 32 bits becomes the longest one") {
  static uint32_t seen;
  ddprun_comm_plugin table = kTable;
  table.create = [](const ddprun_comm_host* host, ddprun_comm**) -> ddprun_status {
    seen = host->deadline_ms;
    return DDPRUN_INTERNAL;
  };
  JoinOptions options = single_rank_options();
  options.deadline = std::chrono::hours(24 * 365);
  error_of([&] { join(table, options); });
  CHECK(seen == ~uint32_t{0});
}

TEST_CASE("a healthy stream-ordered backend without sums of float32 has no error") {
  on_async_error = [] {};
  const auto backend = join_middle(kStreamTable, "auto", 0);
  CHECK(error_of([&] { backend->async_error(); }) == "no error");
  CHECK(calls == 0);
  on_async_error = [] { throw CommError(CommStatus::internal, "the GPU is gone"); };
  CHECK(error_of([&] { backend->async_error(); }) == "1: stream: rank 1: internal error: the GPU is gone");
}

TEST_CASE("a blocking backend fails in its calls, so async_error has nothing to report") {
  on_async_error = [] { throw CommError(CommStatus::internal, "never called"); };
  const auto backend = join_middle();
  CHECK(error_of([&] { backend->async_error(); }) == "no error");
}

}  // namespace ddprun::comm
