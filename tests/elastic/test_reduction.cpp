// TreeReduction: the sum of the gradients of all virtual ranks, on any number of ranks.
#include "support/torch_test.hpp"

#include "comm/joined.hpp"
#include "elastic/tree_reduction.hpp"
#include "support/error_of.hpp"
#include "train/small_models.hpp"

namespace ddprun::elastic {
namespace {

using testing::As;
using testing::error_of;
using testing::failures;
using testing::run_ranks;
using train::require;

constexpr int kVirtual = 8, kSteps = 3;

// Two dtypes of equally many elements, whose buckets change places after the first step. third > 0: also complex
// numbers, and one more bucket with so many elements.
struct Net final : torch::nn::Module {
  explicit Net(int64_t third) {
    const auto add = [this](const char* name, int64_t count, torch::ScalarType type) {
      register_parameter(name, torch::zeros({count}, type));
    };
    add("first", 6, torch::kFloat32);
    add("second", 6, torch::kFloat64);
    if (third == 0) return;
    add("complex", 3, torch::kComplexFloat);
    add("third", third, torch::kFloat32);
  }
};

void backward(const Net& net, int virtual_rank, int step) {
  torch::Tensor loss = torch::zeros({}, torch::kFloat64);
  int64_t place = 0;
  for (const torch::Tensor& parameter : net.parameters()) {
    const auto count = torch::arange(parameter.numel(), torch::kFloat64);
    const torch::Tensor factor = (count * 0.7 + ++place + virtual_rank * 1.3 + step).sin().to(parameter.dtype());
    const torch::Tensor product = parameter * factor;
    // Of a complex number: its gradient has the lazy conjugation.
    loss = loss + (product.is_complex() ? torch::real(product.conj() * factor) : product).sum();
  }
  loss.backward();
}

std::vector<torch::Tensor> gradients_of(const Net& net) {
  std::vector<torch::Tensor> gradients;
  for (const torch::Tensor& parameter : net.parameters()) {
    const torch::Tensor gradient = parameter.grad().resolve_conj();
    gradients.push_back((gradient.is_complex() ? torch::view_as_real(gradient) : gradient).clone());
  }
  return gradients;
}

torch::ScalarType type_of(const torch::Tensor& tensor, std::optional<torch::ScalarType> wire) {
  return wire ? *wire : tensor.scalar_type();
}

// As the definition says: neighbours first.
std::vector<torch::Tensor> expected(int64_t third, int step, std::optional<torch::ScalarType> wire) {
  std::vector<std::vector<torch::Tensor>> sums;
  for (int rank = 0; rank < kVirtual; ++rank) {
    const Net net(third);
    backward(net, rank, step);
    sums.push_back(gradients_of(net));
    for (torch::Tensor& gradient : sums.back()) gradient = gradient.to(type_of(gradient, wire));
  }
  for (; sums.size() > 1; sums.resize(sums.size() / 2)) {
    for (std::size_t i = 0; i < sums.size() / 2; ++i) {
      sums[i] = sums[2 * i];
      for (std::size_t p = 0; p < sums[i].size(); ++p) sums[i][p] = sums[i][p] + sums[2 * i + 1][p];
    }
  }
  return sums.front();
}

void check_on(int size, std::optional<torch::ScalarType> wire, int64_t third = 40) {
  CAPTURE(size);
  CHECK(failures(run_ranks(size, As::processes, kDeadline, [&](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          const Net net(third);
          const comm::Group ranks(*backend, kDeadline);
          train::GradientSyncOptions options;
          options.reducer.bucket_bytes = options.reducer.first_bucket_bytes = 40;
          std::optional<TreeReduction> reduction;
          train::GradientSync sync(train::tensors_of(net), ranks, options);
          reduction.emplace(sync, ranks, kVirtual, wire);
          for (int step = 0; step < kSteps; ++step) {
            for (const torch::Tensor& parameter : net.parameters()) parameter.mutable_grad().reset();
            for (int part = 0; part < reduction->share().count; ++part) {
              const bool is_last = part + 1 == reduction->share().count;
              sync.hooks().hold(!is_last);
              backward(net, reduction->share().first + part, step);
              if (!is_last) reduction->end_part(part, false);
            }
            sync.finalize();
            reduction->end_step();
            const auto sums = gradients_of(net), wanted = expected(third, step, wire);
            for (std::size_t p = 0; p < sums.size(); ++p) {
              require(torch::equal(sums[p].to(wanted[p].dtype()), wanted[p]),
                      "step " + std::to_string(step) + ", parameter " + std::to_string(p));
            }
          }
          ranks.barrier();
        })) == "");
}

TEST_CASE("the sum of all virtual ranks has the same bits on any number of ranks, for each dtype and several buckets") {
  for (const int size : {1, 2, 3, 4, 5, 8}) check_on(size, std::nullopt);
}

TEST_CASE("and if two buckets of equal length and of different dtypes change places") {
  for (const int size : {3, 5}) check_on(size, std::nullopt, 0);
}

TEST_CASE("and if a segment is summed in several pieces") {
  check_on(3, std::nullopt, 1'600'003);
}

TEST_CASE("a virtual rank without a gradient is reported, also if another one of this rank has it") {
  CHECK(failures(run_ranks(1, As::processes, kDeadline, [&](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          const Net net(0);
          const comm::Group ranks(*backend, kDeadline);
          train::GradientSync sync(train::tensors_of(net), ranks, {});
          TreeReduction reduction(sync, ranks, kVirtual);
          sync.hooks().hold(true);
          net.parameters()[0].sum().backward();
          const std::string error = testing::error_of([&] { reduction.end_part(0, false); });
          require(error.starts_with("1: no gradient of virtual rank 0 for \"second\""), error);
          net.parameters()[0].sum().backward();
          reduction.end_part(0, true);
        })) == "");
}

// Rank 0 of four, which is never called.
struct Silent final : CommBackend {
  explicit Silent(Capabilities capabilities) : CommBackend(0, 4, "silent", std::move(capabilities)) {}
  Work allreduce(const Collective&) override { throw std::logic_error("called"); }
  Work broadcast(const Collective& call) override { return allreduce(call); }
  Work allgather(const Collective& call) override { return allreduce(call); }
  Work barrier() override { return allreduce({}); }
  void abort() noexcept override {}
};

TEST_CASE("a backend without an exchange is refused, unless it adds in this order") {
  const auto error_with = [](uint32_t canonical_order, const torch::Tensor& parameter) {
    Silent backend({.host = true, .algorithms = {{"one", ~0U, ~0U, ~0U, false, canonical_order}}});
    const comm::Group ranks(backend, kDeadline);
    const train::ModelTensors model{[=] {
                                      return std::vector<train::NamedTensor>{{"one", parameter}};
                                    },
                                    [] { return std::vector<train::NamedTensor>(); }};
    train::GradientSync sync(model, ranks, {});
    return error_of([&] { const TreeReduction reduction(sync, ranks, kVirtual); });
  };
  const torch::Tensor single = torch::ones({2}, torch::requires_grad()), twice = torch::ones({2}, torch::kFloat64);
  CHECK(error_with(bits(DType::float32), single) == "no error");
  for (const std::string& error :
       {error_with(0, single), error_with(bits(DType::float32), twice.clone().requires_grad_())}) {
    CHECK(error == "3: backend \"silent\" has no exchange, which virtual ranks need; use gloo, shm, ucx or nccl");
  }
}

// Two ranks call allreduce, which this backend has not for 16-bit numbers; tests/e2e has it.
TEST_CASE("and if it is sent as 16-bit numbers") {
  for (const int size : {1, 3, 8}) {
    check_on(size, torch::kBFloat16);
    check_on(size, torch::kFloat16);
  }
}

}  // namespace
}  // namespace ddprun::elastic
