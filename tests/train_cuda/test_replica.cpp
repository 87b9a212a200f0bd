// Replicas on GPUs: kept equal, and compared by the same hashes as on a CPU.
#include "gpu_backend.hpp"

#include "support/error_of.hpp"
#include "train/small_models.hpp"
#include "train/tensor/replicas.hpp"
#include "train/tensor/tensor_buffer.hpp"

namespace ddprun::train {
namespace {

using fake_gpu::kGpu;
using testing::As;
using testing::failures;
using testing::join_gpu;
using testing::run_ranks;


TEST_CASE("rank 0's tensors reach all GPUs, whatever their types and strides") {
  for (const bool at_gpu : {true, false}) {
    CAPTURE(at_gpu);
    CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
            const auto backend = testing::join_either(rank, at_gpu);
            const auto mine = static_cast<float>(rank.rank());
            const std::vector<NamedTensor> tensors{{"a", torch::full({2, 3}, mine + 1, kGpu)},
                                                   {"count", torch::full({}, rank.rank() + 5, torch::kInt64).to(kGpu)},
                                                   {"t", torch::full({4, 2}, mine, kGpu).t()},
                                                   {"empty", torch::empty({0}, kGpu)}};
            broadcast_tensors({*backend, kTimeout}, tensors);
            require(tensors[0].tensor.cpu().equal(torch::full({2, 3}, 1.0F)), "a");
            require(tensors[1].tensor.item<int64_t>() == 5, "count");
            require(tensors[2].tensor.cpu().equal(torch::zeros({2, 4})), "t");
          })) == "");
  }
}

TEST_CASE("a broadcast between GPUs does not make the host wait") {
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [](testing::Rank& rank) {
          const auto backend = testing::join_either(rank, true);
          const std::vector<NamedTensor> tensors{{"a", torch::full({2, 3}, 1., kGpu)}, {"b", torch::zeros({4}, kGpu)}};
          const std::string record = testing::record_of([&] { broadcast_tensors({*backend, kTimeout}, tensors); });
          require(record.find("host waits") == std::string::npos, record);
          require(record.find("calls broadcast") != std::string::npos, record);
        })) == "");
}

TEST_CASE("a tensor's digest is the same on a GPU and on a CPU") {
  CHECK(failures(run_ranks(1, As::processes, kDeadline, [](testing::Rank&) {
          const torch::Tensor tensor = torch::randn({30, 20}).t();
          require(hash_of(tensor) == hash_of(tensor.to(kGpu)), "hash");
          require(digest_of(tensor).hash == digest_of(tensor.to(kGpu)).hash, "print's hash");
          require(digest_of(tensor).sketch == digest_of(tensor.to(kGpu)).sketch, "sketch");
        })) == "");
}

TEST_CASE("replicas on GPUs that differ are reported") {
  for (const bool at_gpu : {true, false}) {
    CAPTURE(at_gpu);
    const auto outcomes = run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
      const auto backend = testing::join_either(rank, at_gpu);
      std::vector<NamedTensor> tensors{{"fc.weight", torch::ones({100}, kGpu)}, {"fc.bias", torch::ones({3}, kGpu)}};
      compare_tensors({*backend, kTimeout}, tensors, 1);
      if (rank.rank() == 1) tensors[1].tensor[1] = std::nextafter(1.0F, 2.0F);
      compare_tensors({*backend, kTimeout}, tensors, 2);
    });
    for (const auto& outcome : outcomes) {
      CHECK(outcome.error ==
            "step 2: parameter \"fc.bias\" differs between rank 0 and rank 1: the replicas have drifted apart");
    }
  }
}

}  // namespace
}  // namespace ddprun::train
