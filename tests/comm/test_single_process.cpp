#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "comm/single_process_backend.hpp"
#include "support/error_of.hpp"

namespace ddprun::comm {
namespace {

using std::chrono::seconds;
using testing::error_of;

Buffer buffer_of(std::vector<float>& values) {
  return {values.data(), values.size(), DType::float32};
}

}  // namespace

TEST_CASE("alone, every collective copies send to recv whatever the op") {
  const auto backend = single_process_backend();
  const std::vector<float> send{1.5F, -2.0F, 3.25F};
  for (const Op op : {Op::sum, Op::min, Op::max, Op::product, Op::avg}) {
    std::vector<float> recv(3, 0.0F);
    backend->allreduce(send.data(), buffer_of(recv), op)->wait(seconds(1));
    CHECK(recv == send);
    recv.assign(3, 0.0F);
    backend->reduce_scatter(send.data(), buffer_of(recv), op)->wait(seconds(1));
    CHECK(recv == send);
  }
  std::vector<float> recv(3, 0.0F);
  backend->allgather(send.data(), buffer_of(recv))->wait(seconds(1));
  CHECK(recv == send);
}

TEST_CASE("alone, in place changes nothing, and broadcast and barrier end at once") {
  const auto backend = single_process_backend();
  std::vector<float> values{1.0F, 2.0F};
  backend->allreduce(values.data(), buffer_of(values), Op::sum)->wait(seconds(1));
  backend->broadcast(buffer_of(values), 0)->wait(seconds(1));
  const auto request = backend->barrier();
  CHECK(request->test());
  CHECK(request->wait(seconds(1)).algorithm == "identity");
  CHECK(values == std::vector<float>{1.0F, 2.0F});
}

TEST_CASE("alone, what no backend can do is refused as in company") {
  const auto backend = single_process_backend();
  std::vector<float> values(4);
  int32_t number = 0;
  const Buffer integers{&number, 1, DType::int32};
  CHECK(error_of([&] { backend->broadcast(buffer_of(values), 1); }) ==
        "3: solo: rank 0: broadcast 1 (float32 x 4, root 1): the group has ranks 0 to 0");
  CHECK(error_of([&] { backend->allreduce(&number, integers, Op::avg); }) ==
        "3: solo: rank 0: allreduce 2 (int32 x 1, avg): avg is for floating types only");
  CHECK(error_of([&] { backend->allreduce(nullptr, buffer_of(values), Op::sum); }) ==
        "3: solo: rank 0: allreduce 3 (float32 x 4, sum): send is null");
  CHECK(error_of([&] {
          backend->allgather(values.data(), {nullptr, 4, DType::float32});
        }) == "3: solo: rank 0: allgather 4 (float32 x 4): recv is null");
  CHECK(error_of([&] { backend->allreduce(nullptr, {nullptr, 0, DType::float32}, Op::sum); }) == "no error");
  CHECK(error_of([&] {
          backend->allreduce(&values[0], {&values[1], 1, DType::float32, Memory::cuda}, Op::sum);
        }) == "3: solo: rank 0: allreduce 6 (float32 x 1, sum, cuda): CUDA memory must be in place");
}

TEST_CASE("alone, after an abort every call fails") {
  const auto backend = single_process_backend();
  backend->abort();
  backend->abort();
  CHECK(error_of([&] { backend->barrier(); }) == "5: solo: rank 0: barrier 1: aborted");
}

TEST_CASE("memory of a backend that has no wish is whole pages") {
  const auto backend = single_process_backend();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{5000}}) {
    const auto memory = backend->allocate(bytes);
    CHECK(reinterpret_cast<uintptr_t>(memory.get()) % 4096 == 0);
    std::fill_n(static_cast<char*>(memory.get()), bytes, 'x');
  }
}

}  // namespace ddprun::comm
