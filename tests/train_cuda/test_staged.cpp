// Memory that a backend does not support, staged: the same results as with a backend that supports it.
#include "gpu_backend.hpp"

#include "comm/fingerprint.hpp"
#include "support/error_of.hpp"
#include "support/paths.hpp"
#include "train/reduce/staged_backend.hpp"
#include "train/small_models.hpp"
#include "train/tensor/tensor_buffer.hpp"

namespace ddprun::train {
namespace {

using fake_gpu::kGpu;
using testing::As;
using testing::failures;
using testing::join_gpu;
using testing::run_ranks;


Collective call_of(const torch::Tensor& send, const torch::Tensor& recv) {
  Collective call = in_place(recv);
  call.send = send.data_ptr();
  call.count = static_cast<std::size_t>(std::min(send.numel(), recv.numel()));
  return call;
}

// Every collective on tensors of one device, in place and not, compared with the expected results.
void check_collectives(CommBackend& backend, torch::Device device) {
  const int rank = backend.rank(), size = backend.size();
  const auto of = [&](int of_rank, int64_t count) {
    return torch::arange(count, torch::TensorOptions(device).dtype(torch::kInt64)) + 100 * of_rank;
  };
  const auto get = [](const torch::Tensor& tensor) { return tensor.cpu(); };
  torch::Tensor sum = of(0, 5), all = of(0, 5);
  for (int other = 1; other < size; ++other) {
    sum = sum + of(other, 5);
    all = torch::cat({all, of(other, 5)});
  }

  torch::Tensor mine = of(rank, 5), got = torch::zeros_like(mine);
  backend.allreduce(call_of(mine, got)).wait(kTimeout);
  require(get(got).equal(get(sum)), "allreduce");
  require(get(mine).equal(get(of(rank, 5))), "what is sent stays");
  backend.allreduce(call_of(mine, mine)).wait(kTimeout);
  require(get(mine).equal(get(sum)), "allreduce in place");

  torch::Tensor word = of(rank, 5);
  Collective from_last = in_place(word);
  from_last.root = size - 1;
  backend.broadcast(from_last).wait(kTimeout);
  require(get(word).equal(get(of(size - 1, 5))), "broadcast");

  torch::Tensor gathered = torch::zeros({5 * size}, torch::TensorOptions(device).dtype(torch::kInt64));
  const torch::Tensor given = of(rank, 5);
  backend.allgather(call_of(given, gathered)).wait(kTimeout);
  require(get(gathered).equal(get(all)), "allgather");
  gathered.zero_();
  torch::Tensor part = gathered.narrow(0, 5 * rank, 5);
  part.copy_(given);
  backend.allgather(call_of(part, gathered)).wait(kTimeout);
  require(get(gathered).equal(get(all)), "allgather in place");

  torch::Tensor block = torch::zeros({2}, torch::TensorOptions(device).dtype(torch::kInt64));
  const torch::Tensor whole = of(rank, 2 * size);
  torch::Tensor wholes = of(0, 2 * size);
  for (int other = 1; other < size; ++other) wholes = wholes + of(other, 2 * size);
  backend.reduce_scatter(call_of(whole, block)).wait(kTimeout);
  require(get(block).equal(get(wholes.narrow(0, 2 * rank, 2))), "reduce_scatter");
  torch::Tensor own_block = whole.narrow(0, 2 * rank, 2);
  backend.reduce_scatter(call_of(whole, own_block)).wait(kTimeout);
  require(get(own_block).equal(get(wholes.narrow(0, 2 * rank, 2))), "reduce_scatter in place");

  torch::Tensor nothing = torch::zeros({0}, device);
  backend.broadcast(in_place(nothing)).wait(kTimeout);
  backend.barrier().wait(kTimeout);
}

TEST_CASE("a backend of CUDA memory also supports host values when staged") {
  for (const int size : {1, 2, 3}) {
    CAPTURE(size);
    CHECK(failures(run_ranks(size, As::processes, kDeadline, [](testing::Rank& rank) {
            const auto backend = staged(join_gpu(rank), kGpu, kTimeout);
            require(backend->capabilities().host && backend->capabilities().stream_ordered, "capabilities");
            check_collectives(*backend, torch::kCPU);
            check_collectives(*backend, kGpu);
          })) == "");
  }
}

TEST_CASE("a backend of host memory supports GPU tensors when staged, and reports that it copied through the host") {
  for (const int size : {1, 2, 3}) {
    CAPTURE(size);
    CHECK(failures(run_ranks(size, As::processes, kDeadline, [](testing::Rank& rank) {
            const auto backend = staged(comm::join_good(rank), kGpu, kTimeout);
            require(backend->capabilities().cuda && !backend->capabilities().stream_ordered, "capabilities");
            check_collectives(*backend, kGpu);
            check_collectives(*backend, torch::kCPU);
            const torch::Tensor one = torch::ones({3}, kGpu);
            require(backend->allreduce(call_of(one, one)).wait(kTimeout).transport == std::string("memory via host"),
                    "transport");
          })) == "");
  }
}

TEST_CASE("a blocking backend is called when the memory is ready") {
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [](testing::Rank& rank) {
          constexpr bool gives_memory = false, ordered = false;
          const auto backend = staged(
              std::make_unique<testing::GpuBackend>(comm::join_good(rank), gives_memory, ordered), kGpu, kTimeout);
          check_collectives(*backend, kGpu);
          check_collectives(*backend, torch::kCPU);
        })) == "");
}

TEST_CASE("host values do not wait for a GPU's computation") {
  CHECK(failures(run_ranks(1, As::processes, kDeadline, [](testing::Rank& rank) {
          const auto backend = staged(join_gpu(rank), kGpu, kTimeout);
          torch::ones({4}, kGpu).mul_(2);
          double value = 3;
          const std::string record = testing::record_of([&] {
            backend->allreduce({.send = &value, .recv = &value, .count = 1, .dtype = DType::float64}).wait(kTimeout);
          });
          require(value == 3, "value");
          require(record.find("stream 0") == std::string::npos, "a wait for the compute stream:\n" + record);
          require(record.find("calls allreduce") != std::string::npos, "no allreduce:\n" + record);
        })) == "");
}

TEST_CASE("a buffer of another stream than the thread's is refused") {
  CHECK(failures(run_ranks(1, As::processes, kDeadline, [](testing::Rank& rank) {
          const auto backend = staged(comm::join_good(rank), kGpu, kTimeout);
          const torch::Tensor one = torch::ones({3}, kGpu);
          Collective call = in_place(one);
          call.stream = handle(side_stream(kGpu));
          require(testing::error_of([&] { backend->allreduce(call); }) ==
                      "1: good: rank 0: allreduce 1 (float32 x 3, sum, cuda): the buffer's stream is not the thread's "
                      "current one",
                  "error");
        })) == "");
}

TEST_CASE("an error of the inner backend reaches the caller") {
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [](testing::Rank& rank) {
    const auto backend = staged(join_gpu(rank), kGpu, kTimeout);
    if (rank.rank() == 1) return;
    double value = 3;
    backend->allreduce({.send = &value, .recv = &value, .count = 1, .dtype = DType::float64}).wait(kTimeout);
  });
  CHECK(outcomes[1].ok());
  CHECK(outcomes[0].number == 5);
}

TEST_CASE("ranks that disagree about CUDA buffers are stopped, with fingerprints sent through the GPU") {
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [](testing::Rank& rank) {
    comm::JoinOptions options = comm::options_of(rank);
    options.device = kGpu.index();
    auto joined =
        comm::join(*plugin::Registry({testing::build_dir() + "/tests/fakes/gpu"}).comm("good_gpu").table, options);
    comm::PluginBackend& adapter = *joined;
    const auto backend = staged(std::move(joined), kGpu, kTimeout);
    adapter.compare_calls(comm::exchange_over(*backend));
    check_collectives(*backend, kGpu);
    const torch::Tensor tensor = torch::ones({rank.rank() + 3}, kGpu);
    backend->allreduce(call_of(tensor, tensor)).wait(kTimeout);
  });
  for (const auto& outcome : outcomes) {
    CHECK(outcome.error == "good_gpu: rank " + std::to_string(outcome.rank) +
                               ": mismatch: rank 0 called allreduce 10 (float32 x 3, sum, cuda), rank 1 called "
                               "allreduce 10 (float32 x 4, sum, cuda)");
  }
}

}  // namespace
}  // namespace ddprun::train
