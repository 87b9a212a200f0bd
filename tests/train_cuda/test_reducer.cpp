// Buckets on GPUs, with a stream-ordered backend and staged through the host. The fake GPU throws if an event is
// missing.
#include "gpu_backend.hpp"

#include "comm/plugin_backend.hpp"
#include "support/error_of.hpp"
#include "train/reduce/bucketed_reducer.hpp"
#include "train/reduce/gradient_hooks.hpp"
#include "train/reduce/staged_backend.hpp"
#include "train/small_models.hpp"

namespace ddprun::train {
namespace {

using fake_gpu::kGpu;
using testing::As;
using testing::failures;
using testing::join_gpu;
using testing::run_ranks;


torch::Tensor input_of(int rank, int step) {
  return torch::arange(8, torch::kFloat32).view({2, 4}) * 0.1 + rank * 0.7 - step * 0.2;
}

ReducerOptions buckets_of(std::size_t bytes) {
  ReducerOptions options;
  options.bucket_bytes = options.first_bucket_bytes = bytes;
  return options;
}

// A model with its reducer; equal on all ranks.
struct Replica {
  Replica(CommBackend& backend, torch::Device device, const ReducerOptions& options) : device(device) {
    torch::manual_seed(7);
    model = std::make_shared<TwoLayers>();
    model->to(device);
    parameters = trainable_parameters(*model);
    reducer = std::make_unique<BucketedReducer>(comm::Group(backend, kTimeout), parameters, options);
    hooks = std::make_shared<GradientHooks>(*reducer, parameters);
  }
  void step(const torch::Tensor& input) {
    forget_gradients(*model);
    loss_of(*model, input).backward();
    reducer->finalize();
  }
  std::vector<torch::Tensor> gradients() const {
    std::vector<torch::Tensor> on_host;
    for (const NamedTensor& parameter : parameters) on_host.push_back(parameter.tensor.grad().cpu());
    return on_host;
  }
  torch::Device device;
  std::shared_ptr<TwoLayers> model;
  std::vector<NamedTensor> parameters;
  std::unique_ptr<BucketedReducer> reducer;
  std::shared_ptr<void> hooks;
};

TEST_CASE("gradients on GPUs become exactly the averages of the same ranks on CPUs") {
  for (const bool at_gpu : {true, false}) {
    for (const std::size_t bytes : {std::size_t{1} << 20, std::size_t{100}, std::size_t{1}}) {
      CAPTURE(at_gpu);
      CAPTURE(bytes);
      CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
              const auto on_cpu = comm::join_good(rank);
              const auto on_gpu = testing::join_either(rank, at_gpu);
              Replica expected(*on_cpu, torch::kCPU, buckets_of(bytes));
              Replica replica(*on_gpu, kGpu, buckets_of(bytes));
              for (int step = 0; step < 6; ++step) {
                const torch::Tensor input = input_of(rank.rank(), step);
                expected.step(input);
                replica.step(input.to(kGpu));
                const auto want = expected.gradients(), have = replica.gradients();
                for (std::size_t i = 0; i < want.size(); ++i) {
                  require(have[i].equal(want[i]), replica.parameters[i].name + " in step " + std::to_string(step));
                }
              }
              require(replica.reducer->bucket_order() == expected.reducer->bucket_order(), "order");
              require(replica.reducer->execution().transport == (at_gpu ? "memory" : "memory via host"), "transport");
            })) == "");
    }
  }
}

TEST_CASE("with a stream-ordered backend the host does not wait, and the buckets use a separate stream") {
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
          const auto backend = testing::join_either(rank, true);
          Replica replica(*backend, kGpu, buckets_of(1));
          replica.step(input_of(rank.rank(), 0).to(kGpu));  // has one bucket, and fixes the order for the next steps
          for (int step = 1; step < 8; ++step) {
            const torch::Tensor input = input_of(rank.rank(), step).to(kGpu);
            const std::string record = testing::record_of([&] { replica.step(input); });
            require(record.find("host waits") == std::string::npos, "step " + std::to_string(step) + ":\n" + record);
            std::size_t calls = 0, at = 0;
            while ((at = record.find("calls allreduce", at)) != std::string::npos) ++calls, ++at;
            require(calls == 4, "a call per bucket:\n" + record);
            require(record.find("stream 0 calls") == std::string::npos, "on the stream of backward:\n" + record);
          }
        })) == "");
}

TEST_CASE("a world of one reduces on its GPU without waiting") {
  CHECK(failures(run_ranks(1, As::processes, kDeadline, [&](testing::Rank&) {
          const auto backend = comm::single_process_backend();
          Replica expected(*backend, torch::kCPU, buckets_of(64));
          Replica replica(*backend, kGpu, buckets_of(64));
          for (int step = 0; step < 5; ++step) {
            expected.step(input_of(0, step));
            const torch::Tensor input = input_of(0, step).to(kGpu);
            const std::string record = testing::record_of([&] { replica.step(input); });
            require(record.find("host waits") == std::string::npos, "step " + std::to_string(step) + ":\n" + record);
            const auto want = expected.gradients(), have = replica.gradients();
            for (std::size_t i = 0; i < want.size(); ++i) require(have[i].equal(want[i]), replica.parameters[i].name);
          }
        })) == "");
}

TEST_CASE("the times of buckets are in order on the host's clock, and add up") {
  for (const bool at_gpu : {true, false}) {
    CAPTURE(at_gpu);
    CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
            const auto backend = testing::join_either(rank, at_gpu);
            Replica replica(*backend, kGpu, buckets_of(1));
            double seconds = 0;
            for (int step = 0; step < 7; ++step) {
              const auto before = std::chrono::steady_clock::now();
              replica.step(input_of(rank.rank(), step).to(kGpu));
              const auto transfers = replica.reducer->transfers();
              require(transfers.size() == (step == 0 ? 1U : 4U), "one per bucket");
              auto last = before - std::chrono::milliseconds(1);
              for (const Transfer& transfer : transfers) {
                require(transfer.begin >= last && transfer.end >= transfer.begin, "order");
                last = transfer.end;
                seconds += transfer.seconds();
              }
              require(last <= std::chrono::steady_clock::now(), "in the past");
            }
            const TransferTotals totals = replica.reducer->totals();
            require(totals.bytes == sizeof(float) * (4 * 8 + 8 + 8 * 3 + 3), "bytes");
            require(std::abs(totals.seconds - seconds) < 1e-6, "seconds");
          })) == "");
  }
}

TEST_CASE("buckets are in the GPU memory that the backend allocates") {
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
          auto inner = join_gpu(rank, true);
          const testing::GpuBackend& gpu = *inner;
          const auto backend = staged(std::move(inner), kGpu, kTimeout);
          Replica replica(*backend, kGpu, buckets_of(std::size_t{1} << 20));
          for (int step = 0; step < 2; ++step) replica.step(input_of(rank.rank(), step).to(kGpu));
          const auto [begin, bytes] = gpu.given.back();
          for (const NamedTensor& parameter : replica.parameters) {
            const auto* const at = static_cast<const std::byte*>(parameter.tensor.grad().data_ptr());
            require(parameter.tensor.grad().device() == kGpu, "device");
            require(at >= begin && at < begin + bytes, parameter.name);
          }
        })) == "");
}

TEST_CASE("a peer that leaves in the middle of a step ends it with an error") {
  for (const bool at_gpu : {true, false}) {
    CAPTURE(at_gpu);
    const auto outcomes = run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
      const auto backend = testing::join_either(rank, at_gpu);
      Replica replica(*backend, kGpu, buckets_of(64));
      replica.step(input_of(rank.rank(), 0).to(kGpu));
      if (rank.rank() == 1) return;
      replica.step(input_of(0, 1).to(kGpu));
      backend->barrier().wait(kTimeout);
    });
    CHECK(outcomes[1].ok());
    CHECK(outcomes[0].end == testing::Outcome::End::threw);
    CHECK(outcomes[0].number == 5);
  }
}

}  // namespace
}  // namespace ddprun::train
