#include <doctest/doctest.h>

#include <csignal>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "joined.hpp"
#include "support/error_of.hpp"

namespace ddprun::comm {
namespace {

using namespace std::chrono_literals;
using testing::As;
using testing::error_of;
using testing::failures;
using testing::run_ranks;

constexpr auto kDeadline = 60s;

// In place unless `send` is given.
template <typename T>
Collective call_of(std::vector<T>& values, DType dtype, Op op = Op::sum, const void* send = nullptr) {
  return {.send = send != nullptr ? send : values.data(),
          .recv = values.data(),
          .count = values.size(),
          .dtype = dtype,
          .op = op};
}

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("wrong: " + what);
}

// Every collective with its expected values, on enough elements for several chunks.
void call_everything(testing::Rank& rank) {
  constexpr std::size_t kCount = 300'001;
  const auto backend = join_good(rank);
  const int size = rank.size();
  const auto ranks = static_cast<std::size_t>(size);
  const float sum_of_ranks = static_cast<float>(size * (size - 1)) / 2;
  require(backend->rank() == rank.rank() && backend->size() == size && backend->name() == "good", "identity");

  std::vector<float> values(kCount, static_cast<float>(rank.rank()));
  const Execution by = backend->allreduce(call_of(values, DType::float32)).wait(kDeadline);
  require(values == std::vector<float>(kCount, sum_of_ranks), "allreduce");
  require(by.algorithm == "slots" && by.transport == "memory", "execution");

  std::vector<int64_t> letter(7, rank.rank() == size - 1 ? 42 : 0);
  backend->broadcast({.recv = letter.data(), .count = 7, .dtype = DType::int64, .root = size - 1}).wait(kDeadline);
  require(letter == std::vector<int64_t>(7, 42), "broadcast");

  const std::vector<int32_t> mine(3, rank.rank());
  std::vector<int32_t> all(3 * ranks);
  backend->allgather({.send = mine.data(), .recv = all.data(), .count = 3, .dtype = DType::int32}).wait(kDeadline);
  for (std::size_t i = 0; i < all.size(); ++i) require(all[i] == static_cast<int32_t>(i / 3), "allgather");

  std::vector<double> send(2 * ranks);
  std::iota(send.begin(), send.end(), 0.0);
  std::vector<double> block(2);
  Work work = backend->reduce_scatter(call_of(block, DType::float64, Op::avg, send.data()));
  require(work.test(), "test of a blocking backend");
  work.wait(kDeadline);
  require(block == std::vector<double>{2.0 * rank.rank(), 2.0 * rank.rank() + 1}, "reduce_scatter");

  // The number of bytes from rank a to rank b is 10 a + b.
  std::vector<std::vector<char>> out, in;
  std::vector<Block> to, from;
  for (int peer = 0; peer < size; ++peer) {
    out.emplace_back(static_cast<std::size_t>(10 * rank.rank() + peer), static_cast<char>('a' + rank.rank()));
    in.emplace_back(static_cast<std::size_t>(10 * peer + rank.rank()));
    to.push_back({out.back().data(), out.back().size()});
    from.push_back({in.back().data(), in.back().size()});
  }
  backend->exchange({to, from}).wait(kDeadline);
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    require(in[peer] == std::vector<char>(in[peer].size(), static_cast<char>('a' + peer)), "exchange");
  }

  backend->barrier().wait(kDeadline);
}

}  // namespace

TEST_CASE("the adapter runs every collective, with ranks as processes and as threads") {
  for (const As as : {As::processes, As::threads}) {
    for (const int size : {1, 2, 3}) CHECK(failures(run_ranks(size, as, kDeadline, call_everything)) == "");
  }
}

TEST_CASE("capabilities are what the plugin declares") {
  const Capabilities capabilities = capabilities_of(fake("good"));
  CHECK(capabilities.host);
  CHECK_FALSE(capabilities.cuda);
  CHECK(capabilities.blocking);
  CHECK_FALSE(capabilities.alloc);
  REQUIRE(capabilities.algorithms.size() == 1);
  CHECK(capabilities.algorithms[0].name == "slots");
  CHECK((capabilities.algorithms[0].dtypes & (1U << DDPRUN_FLOAT16)) == 0);
}

TEST_CASE("an undeclared algorithm is reported with the declared ones") {
  CHECK_FALSE(algorithm_error(fake("good"), "auto", Memory::host));
  CHECK_FALSE(algorithm_error(fake("good"), "slots", Memory::host));
  CHECK(algorithm_error(fake("good"), "slot", Memory::host) ==
        "expected \"auto\" or \"slots\" (did you mean \"slots\"?)");
  auto options = single_rank_options();
  options.algorithm = "ring";
  CHECK(error_of([&] { join(fake("good"), options); }) ==
        "3: good: comm.algorithm = \"ring\": expected \"auto\" or \"slots\"");
}

TEST_CASE("an algorithm that does not support the memory is reported, with those that do") {
  const ddprun_comm_algorithm algorithms[] = {algorithm("ring", kAllDtypes, kAllOps),
                                              algorithm("here", kAllDtypes, kAllOps, bits(DDPRUN_HOST)),
                                              algorithm("there", kAllDtypes, kAllOps, bits(DDPRUN_CUDA))};
  ddprun_comm_plugin both = fake("good");
  both.capabilities = DDPRUN_CAP_HOST | DDPRUN_CAP_CUDA;
  both.algorithms = algorithms;
  both.algorithm_count = 3;
  for (const Memory memory : {Memory::host, Memory::cuda}) {
    CHECK_FALSE(algorithm_error(both, "auto", memory));
    CHECK_FALSE(algorithm_error(both, "ring", memory));
  }
  CHECK_FALSE(algorithm_error(both, "here", Memory::host));
  CHECK_FALSE(algorithm_error(both, "there", Memory::cuda));
  CHECK(algorithm_error(both, "here", Memory::cuda)
            .value_or("")
            .starts_with(
                "takes host memory only, and the buffers are on a GPU: expected \"auto\", \"ring\" or \"there\""));
  CHECK(algorithm_error(both, "there", Memory::host)
            .value_or("")
            .starts_with(
                "takes CUDA memory only, and the buffers are in host memory: expected \"auto\", \"ring\" or \"here\""));
}

TEST_CASE("a plugin that supports both memories gets GPU memory, unless copies through the host are configured") {
  ddprun_comm_plugin host = fake("good"), cuda = host, both = host;
  cuda.capabilities = DDPRUN_CAP_CUDA;
  both.capabilities = DDPRUN_CAP_HOST | DDPRUN_CAP_CUDA;
  CHECK(memory_given(both, Memory::cuda, false) == Memory::cuda);
  CHECK(memory_given(both, Memory::cuda, true) == Memory::host);
  CHECK(memory_given(host, Memory::cuda, true) == Memory::host);
  CHECK(memory_given(cuda, Memory::cuda, true) == Memory::cuda);
  CHECK(memory_given(both, Memory::host, false) == Memory::host);
}

TEST_CASE("unsupported memory is reported, with what to do") {
  ddprun_comm_plugin host = fake("good"), cuda = host, both = host;
  cuda.capabilities = DDPRUN_CAP_CUDA | DDPRUN_CAP_STREAM_ORDERED | DDPRUN_CAP_ALLOC;
  both.capabilities = DDPRUN_CAP_HOST | DDPRUN_CAP_CUDA | DDPRUN_CAP_ALLOC;
  for (const bool staged : {false, true}) {
    CHECK_FALSE(memory_error(host, Memory::host, staged));
    CHECK_FALSE(memory_error(cuda, Memory::cuda, staged));
    CHECK_FALSE(memory_error(both, Memory::host, staged));
    CHECK_FALSE(memory_error(both, Memory::cuda, staged));
    CHECK(memory_error(cuda, Memory::host, staged) ==
          "takes CUDA memory, and the tensors are on the CPU; set launch.device = \"cuda\", or take another backend");
  }
  CHECK(memory_error(host, Memory::cuda, false) ==
        "takes host memory, and the tensors are on a GPU (launch.device); use \"nccl\", or in a config let ddprun copy "
        "them "
        "through the host with comm.stage_through_host = true");
  CHECK_FALSE(memory_error(host, Memory::cuda, true));
  CHECK(capabilities_of(cuda).alloc_memory == Memory::cuda);
  CHECK(capabilities_of(both).alloc_memory == Memory::host);
}

TEST_CASE("an undeclared capability is refused before the plugin is called") {
  const auto backend = join(fake("good"), single_rank_options());
  std::vector<uint16_t> halves(2);
  CHECK(error_of([&] { backend->allreduce(call_of(halves, DType::float16)); }) ==
        "3: good: rank 0: allreduce 1 (float16 x 2, sum): unsupported: no algorithm of good takes sum of float16");
  std::vector<float> values(2);
  CHECK(error_of([&] { backend->broadcast({.recv = values.data(), .count = 2, .memory = Memory::cuda}); }) ==
        "3: good: rank 0: broadcast 2 (float32 x 2, root 0, cuda): the backend takes no CUDA memory");
  Collective in_order = call_of(values, DType::float32);
  in_order.canonical_order = true;
  in_order.op = Op::max;
  CHECK(error_of([&] { backend->allreduce(in_order); }) ==
        "3: good: rank 0: allreduce 3 (float32 x 2, max): no chosen algorithm adds this in canonical order");
  auto options = single_rank_options();
  options.algorithm = "slots";
  const auto chosen = join(fake("good"), options);
  CHECK(error_of([&] { chosen->allreduce(call_of(halves, DType::float16)); }) ==
        "3: good: rank 0: allreduce 1 (float16 x 2, sum): unsupported: algorithm \"slots\" of good takes sum of "
        "float16");
}

TEST_CASE("a plugin's message reaches the user, with its name, the collective and the status") {
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [](testing::Rank& rank) {
    auto options = options_of(rank);
    options.deadline = 200ms;
    const auto backend = join(fake("good"), options);
    std::vector<float> values(5);
    const auto call = [&] { backend->allreduce(call_of(values, DType::float32, Op::max)); };
    if (rank.rank() == 0) rank.report(error_of(call));
    rank.meet();  // rank 1 stays alive and makes no call
  });
  CHECK(failures(outcomes) == "");
  CHECK(outcomes[0].records == std::vector<std::string>{"5: good: rank 0: allreduce 1 (float32 x 5, max): timeout: not "
                                                        "all ranks came in time"});
}

TEST_CASE("a peer's death ends a collective, and the error names the lost rank") {
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [](testing::Rank& rank) {
    const auto backend = join_good(rank);
    backend->barrier().wait(kDeadline);
    if (rank.rank() == 1) std::raise(SIGKILL);
    rank.report(error_of([&] { backend->barrier(); }));
  });
  CHECK(outcomes[1].end == testing::Outcome::End::killed);
  CHECK(outcomes[0].records == std::vector<std::string>{"5: good: rank 0: barrier 2: peer lost: rank 1 has ended"});
}

TEST_CASE("an abort from another thread ends a blocked collective and all later ones") {
  const auto outcomes = run_ranks(2, As::threads, kDeadline, [](testing::Rank& rank) {
    const auto backend = join_good(rank);
    if (rank.rank() == 0) {
      std::thread other([&] {
        std::this_thread::sleep_for(50ms);
        backend->abort();
      });
      rank.report(error_of([&] { backend->barrier(); }));
      rank.report(error_of([&] { backend->barrier(); }));
      other.join();
    }
    rank.meet();
  });
  CHECK(failures(outcomes) == "");
  const std::string why = ": aborted: the communicator was aborted";
  CHECK(outcomes[0].records ==
        std::vector<std::string>{"5: good: rank 0: barrier 1" + why, "5: good: rank 0: barrier 2" + why});
}

TEST_CASE("a join without one of the ranks ends with the first cause") {
  auto options = single_rank_options();
  options.size = 2;
  options.allgather = [](std::string_view) -> std::vector<std::string> {
    throw Error(ExitCode::rendezvous, "rank 1 did not come");
  };
  CHECK(error_of([&] { join(fake("good"), options); }) == "4: rank 1 did not come");
}

TEST_CASE("a join with values of different lengths is reported as different plugins") {
  auto options = single_rank_options();
  options.size = 2;
  options.allgather = [](std::string_view mine) { return std::vector<std::string>{std::string(mine), "abc"}; };
  CHECK(error_of([&] { join(fake("good"), options); }) ==
        "4: good: rank 1 sent 3 bytes to join, rank 0 sent 8 bytes; the ranks run different plugins or options");
}

TEST_CASE("a plugin's error about its options is exit code 3, its library's error is 1") {
  CHECK(error_of([] { join(fake("longer"), single_rank_options()); }) ==
        "1: longer: rank 0: joining 1 rank: internal error: the plugin does not say why");
  auto options = single_rank_options();
  options.device = 0;
  CHECK(error_of([&] { join(fake("good"), options); }) == "3: good: this backend takes host memory only");
}

TEST_CASE("a plugin's exception or invalid result is stopped at the ABI boundary") {
  const std::string rule = "; a plugin must return a status instead";
  auto options = single_rank_options();
  options.options["throw"] = "create";
  CHECK(error_of([&] { join(fake("throwing"), options); }) ==
        "3: throwing: rank 0: joining 1 rank: the plugin threw \"no create today\"" + rule);
  const auto backend = join(fake("throwing"), single_rank_options());
  std::vector<float> value(1);
  const Collective call = call_of(value, DType::float32);
  CHECK(error_of([&] { backend->allreduce(call); }) ==
        "3: throwing: rank 0: allreduce 1 (float32 x 1, sum): the plugin threw \"no allreduce today\"" + rule);
  CHECK(error_of([&] { backend->broadcast(call); }) ==
        "3: throwing: rank 0: broadcast 2 (float32 x 1, root 0): the plugin threw something unknown" + rule);
  CHECK(error_of([&] { backend->barrier(); }) ==
        "3: throwing: rank 0: barrier 3: the plugin said ok, but gave no request");
  CHECK(error_of([&] { backend->reduce_scatter(call); }) ==
        "1: throwing: rank 0: reduce_scatter 4 (float32 x 1, sum): unknown status 99: the plugin does not say why");
}

TEST_CASE("memory keeps its communicator alive, and an aborted collective reports the abort") {
  auto backend = join(fake("good"), single_rank_options());
  auto memory = backend->allocate(100);
  {
    Work work = backend->barrier();
    backend->abort();
    CHECK(error_of([&] { work.wait(1s); }) == "5: good: rank 0: barrier 1: aborted: the communicator was aborted");
  }
  backend.reset();
  CHECK(memory != nullptr);
}

}  // namespace ddprun::comm
