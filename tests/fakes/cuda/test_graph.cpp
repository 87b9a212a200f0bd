// Replays of LibTorch's CUDAGraph on the fake device have the results of eager steps, bit for bit.
#include "graph_test.hpp"

#include <thread>

namespace ddprun::fake_gpu {
namespace {

using at::cuda::CUDAGraph;
using torch::Tensor;
namespace nn = torch::nn;

// A training with SGD and all state that a step may change: weights, momenta, averages, random numbers.
class Training {
 public:
  Training() {
    weights_ = net_->parameters();
    for (const Tensor& weight : weights_) momenta_.push_back(torch::zeros_like(weight));
  }

  Tensor step(const Tensor& input, const Tensor& target) {
    for (Tensor& weight : weights_) weight.mutable_grad() = Tensor();
    const Tensor loss = nn::functional::cross_entropy(net_->forward(input), target);
    loss.backward();
    std::vector<Tensor> gradients;
    for (const Tensor& weight : weights_) gradients.push_back(weight.grad());
    const torch::NoGradGuard no_grad;
    at::_fused_sgd_(weights_, gradients, momenta_, 0.01, 0.9, 0.1, 0, false, false, false);
    return loss.detach();
  }

  std::vector<Tensor> state() const {
    std::vector<Tensor> all;
    for (const auto& some : {net_->parameters(), net_->buffers(), momenta_}) {
      for (const Tensor& one : some) all.push_back(one.detach().cpu().clone());
    }
    return all;
  }

 private:
  static nn::Sequential seeded() {
    torch::manual_seed(5);
    nn::Sequential net(nn::Conv2d(3, 4, 3), nn::BatchNorm2d(4), nn::ReLU(), nn::Dropout(0.5), nn::Flatten(),
                       nn::Linear(16, 10), nn::ReLU(), nn::Linear(10, 5));
    net->to(kGpu);
    return net;
  }

  nn::Sequential net_ = seeded();
  std::vector<Tensor> weights_, momenta_;
};

bool equal(const std::vector<Tensor>& some, const std::vector<Tensor>& others) {
  return std::equal(some.begin(), some.end(), others.begin(), others.end(),
                    [](const Tensor& one, const Tensor& other) { return one.equal(other); });
}

Tensor batch(int step) {
  return torch::linspace(-1, 1 + step, 8 * 3 * 4 * 4).reshape({8, 3, 4, 4}).to(kGpu);
}

TEST_CASE("replayed steps have the results of eager steps, and the capture is no step") {
  constexpr int kEager = 2, kSteps = 5;
  const OnSide on_side;
  const Tensor target = torch::arange(8, kGpu).remainder(5);
  std::vector<Tensor> expected_losses;
  Training eager;
  for (int step = 0; step < kSteps; ++step) expected_losses.push_back(eager.step(batch(step), target));

  Training replayed;
  const Tensor input = batch(0);
  Tensor loss;
  for (int step = 0; step < kEager; ++step) replayed.step(batch(step), target);
  const auto before = replayed.state();
  CUDAGraph graph;
  capture(graph, [&] { loss = replayed.step(input, target); });
  CHECK(equal(replayed.state(), before));
  CHECK(loss.isnan().item<bool>());
  for (int step = kEager; step < kSteps; ++step) {
    input.copy_(batch(step));
    graph.replay();
    CHECK(loss.equal(expected_losses[static_cast<std::size_t>(step)]));
  }
  CHECK(equal(replayed.state(), eager.state()));
}

TEST_CASE("backward of a capture runs on autograd's thread") {
  const OnSide on_side;
  Training training;
  std::thread::id thread;
  const Tensor input = batch(0).requires_grad_();
  input.register_hook([&](const Tensor&) { thread = std::this_thread::get_id(); });
  CUDAGraph graph;
  capture(graph, [&] { training.step(input, torch::arange(8, kGpu).remainder(5)); });
  CHECK(thread != std::thread::id());
  CHECK(thread != std::this_thread::get_id());
}

TEST_CASE("random numbers differ from replay to replay, and the capture draws none") {
  const OnSide on_side;
  const auto state_of = [](torch::Device device) { return at::globalContext().defaultGenerator(device).get_state(); };
  const Tensor before = state_of(kGpu);
  const Tensor host = state_of(torch::kCPU);
  const Tensor some = torch::ones({64}, kGpu);
  Tensor kept;
  CUDAGraph graph;
  capture(graph, [&] { kept = torch::dropout(some.requires_grad_(), 0.5, true).detach() + torch::rand({64}, kGpu); });
  CHECK(state_of(kGpu).equal(before));
  graph.replay();
  const Tensor first = kept.clone();
  graph.replay();
  CHECK_FALSE(kept.equal(first));
  CHECK_FALSE(first.isnan().any().item<bool>());
  CHECK_FALSE(state_of(kGpu).equal(before));
  CHECK(state_of(torch::kCPU).equal(host));
}

TEST_CASE("copies between the device and page-locked memory are part of a graph, host scalars are not") {
  const OnSide on_side;
  const auto page_locked = torch::TensorOptions().pinned_memory(true);
  const Tensor from = torch::ones({3}, page_locked), to = torch::zeros({3}, page_locked);
  const Tensor factor = torch::tensor(2.);
  CUDAGraph graph;
  capture(graph, [&] { to.copy_(torch::empty({3}, kGpu).copy_(from, true) * factor, true); });
  CHECK(to.equal(torch::zeros({3})));
  from.fill_(5);
  factor.fill_(3);
  graph.replay();
  auto done = event();
  done.record(current());
  CHECK(to.isnan().all().item<bool>());
  done.synchronize();
  CHECK(to.equal(torch::full({3}, 10.)));
}

TEST_CASE("the host continues while a replay, copies of its results and inputs of the next replay are queued") {
  const OnSide on_side;
  const Stream stream = stream_of(current().id(), 0);
  const auto page_locked = torch::TensorOptions().pinned_memory(true);
  const Tensor from = torch::full({3}, 4., page_locked), to = torch::zeros({3}, page_locked);
  const Tensor given = torch::ones({3}, kGpu), made = torch::zeros({3}, kGpu);
  std::atomic<bool> may_go{false};
  CUDAGraph graph;
  capture(graph, [&] {
    begin(stream);
    on_launch(stream, [&](Stream) {
      return [&] {
        while (!may_go) std::this_thread::yield();
      };
    });
    made.add_(given);
  });
  auto done = event();
  graph.replay();
  to.copy_(made, true);
  done.record(current());
  given.copy_(from, true);
  graph.replay();
  CHECK_FALSE(done.query());
  CHECK(to.isnan().all().item<bool>());
  may_go = true;
  done.synchronize();
  CHECK(to.equal(torch::ones({3})));
  CHECK(made.equal(torch::full({3}, 5., kGpu)));
}

TEST_CASE("indices of a capture may not be computed yet") {
  const OnSide on_side;
  const Tensor rows = torch::empty({2}, torch::TensorOptions(kGpu).dtype(torch::kLong));
  const Tensor table = torch::arange(4, kGpu);
  Tensor chosen;
  CUDAGraph graph;
  capture(graph, [&] { chosen = table.index_select(0, rows); });
  rows.copy_(torch::tensor({3, 1}));
  graph.replay();
  CHECK(chosen.equal(torch::tensor({3, 1}).to(kGpu)));
}

}  // namespace
}  // namespace ddprun::fake_gpu
