#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "comm/plugin_backend.hpp"
#include "support/error_of.hpp"

namespace ddprun::comm {
namespace {

using std::chrono::seconds;
using testing::error_of;

Collective call_of(std::vector<float>& recv, const void* send, Op op = Op::sum) {
  return {.send = send, .recv = recv.data(), .count = recv.size(), .op = op};
}

}  // namespace

TEST_CASE("single process: every collective copies send to recv, whatever the op") {
  const auto backend = single_process_backend();
  const std::vector<float> send{1.5F, -2.0F, 3.25F};
  for (const Op op : {Op::sum, Op::min, Op::max, Op::product, Op::avg}) {
    std::vector<float> recv(3, 0.0F);
    backend->allreduce(call_of(recv, send.data(), op)).wait(seconds(1));
    CHECK(recv == send);
    recv.assign(3, 0.0F);
    backend->reduce_scatter(call_of(recv, send.data(), op)).wait(seconds(1));
    CHECK(recv == send);
  }
  std::vector<float> recv(3, 0.0F);
  backend->allgather(call_of(recv, send.data())).wait(seconds(1));
  CHECK(recv == send);
}

TEST_CASE("single process: in place changes nothing, and broadcast and barrier end immediately") {
  const auto backend = single_process_backend();
  std::vector<float> values{1.0F, 2.0F};
  backend->allreduce(call_of(values, values.data())).wait(seconds(1));
  backend->broadcast(call_of(values, nullptr)).wait(seconds(1));
  Work work = backend->barrier();
  CHECK(work.test());
  CHECK(std::string(work.wait(seconds(1)).algorithm) == "identity");
  CHECK(values == std::vector<float>{1.0F, 2.0F});
}

TEST_CASE("single process: an exchange copies the only block") {
  const auto backend = single_process_backend();
  const std::vector<Block> none(1), nothing;
  std::vector<char> from{'a', 'b'}, to{'-', '-'};
  const std::vector<Block> send{{from.data(), 2}}, recv{{to.data(), 2}};
  CHECK(backend->capabilities().exchange);
  backend->exchange({send, recv}).wait(seconds(1));
  CHECK(to == from);
  backend->exchange({none, none}).wait(seconds(1));
  backend->exchange({send, send}).wait(seconds(1));
  CHECK(error_of([&] {
          backend->exchange({nothing, recv});
        }) == "3: single-process: rank 0: exchange 4: send and recv need one block for each rank");
}

TEST_CASE("single process: invalid calls are refused") {
  const auto backend = single_process_backend();
  std::vector<float> values(4);
  int32_t number = 0;
  CHECK(error_of([&] { backend->broadcast({.recv = values.data(), .count = 4, .root = 1}); }) ==
        "3: single-process: rank 0: broadcast 1 (float32 x 4, root 1): the group has ranks 0 to 0");
  CHECK(error_of([&] {
          backend->allreduce({.send = &number, .recv = &number, .count = 1, .dtype = DType::int32, .op = Op::avg});
        }) == "3: single-process: rank 0: allreduce 2 (int32 x 1, avg): avg is for floating types only");
  CHECK(error_of([&] { backend->allreduce(call_of(values, nullptr)); }) ==
        "3: single-process: rank 0: allreduce 3 (float32 x 4, sum): send is null");
  CHECK(error_of([&] { backend->allgather({.send = values.data(), .count = 4}); }) ==
        "3: single-process: rank 0: allgather 4 (float32 x 4): recv is null");
  CHECK(error_of([&] { backend->allreduce({}); }) == "no error");
  CHECK(error_of([&] {
          backend->allreduce({.send = &values[0], .recv = &values[1], .count = 1, .memory = Memory::cuda});
        }) == "3: single-process: rank 0: allreduce 6 (float32 x 1, sum, cuda): CUDA memory must be in place");
}

TEST_CASE("single process: after an abort every call fails") {
  const auto backend = single_process_backend();
  backend->abort();
  backend->abort();
  CHECK(error_of([&] { backend->barrier(); }) == "5: single-process: rank 0: barrier 1: aborted");
}

TEST_CASE("a backend without alloc allocates whole pages") {
  const auto backend = single_process_backend();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{5000}}) {
    const auto memory = backend->allocate(bytes);
    CHECK(reinterpret_cast<uintptr_t>(memory.get()) % 4096 == 0);
    std::fill_n(static_cast<char*>(memory.get()), bytes, 'x');
  }
}

}  // namespace ddprun::comm
