// LibTorch's CUDAGraph on the pretended device: replays compute what eager steps do, to the bit, and a capture takes
// and refuses what one on a GPU does.
#include "torch_test.hpp"

#include <ATen/cuda/CUDAGraph.h>

#include <thread>

namespace ddprun::fake_gpu {
namespace {

using at::cuda::CUDAGraph;
using torch::Tensor;
namespace nn = torch::nn;

const std::string kUnsupported = "CUDA error: operation not permitted when stream is capturing";

// On a stream of its own, as a capture has to be; what was on the device before is done.
class OnSide {
 public:
  OnSide() { guard().synchronizeDevice(0); }
  ~OnSide() { guard().synchronizeDevice(0); }

 private:
  c10::StreamGuard on_{another()};
};

// Without what a refused body leaves behind.
void capture(CUDAGraph& graph, const std::function<void()>& body) {
  graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  try {
    body();
  } catch (...) {
    CHECK_THROWS(graph.capture_end());
    throw;
  }
  graph.capture_end();
}

std::string refusal(const std::function<void()>& body) {
  CUDAGraph graph;
  try {
    capture(graph, body);
  } catch (const c10::Error& error) {
    const std::string words = error.what_without_backtrace();
    return words.substr(0, words.find('\n'));
  }
  return "";
}

// What SGD trains, with all that a step may change: weights, momenta, averages, random numbers.
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

TEST_CASE("steps that are replayed end where eager ones do, and the capture is no step") {
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

TEST_CASE("what the host would have to wait for is refused in a capture, and spoils it") {
  const OnSide on_side;
  const Tensor some = torch::ones({3}, kGpu);
  auto recorded = event();
  recorded.record(current());
  CHECK(refusal([&] { some.sum().item<float>(); }) == kUnsupported);
  CHECK(refusal([&] { some.nonzero(); }) == kUnsupported);
  CHECK(refusal([&] { some.cpu(); }) == kUnsupported);
  CHECK(refusal([&] { some.copy_(torch::ones({3})); }) == kUnsupported);
  CHECK(refusal([&] { some.copy_(torch::ones({3}), true); }) == kUnsupported);
  CHECK(refusal([&] { some.index({torch::tensor({0, 1})}); }) == kUnsupported);
  CHECK(refusal([&] { guard().synchronizeDevice(0); }) == kUnsupported);
  CHECK(refusal([&] { recorded.synchronize(); }) == kUnsupported);
  CHECK(refusal([&] { recorded.query(); }) == kUnsupported);
  CHECK(refusal([&] { recorded.block(current()); }) ==
        "CUDA error: dependency created on uncaptured work in another stream");
  CHECK(refusal([&] {
          auto inside = event();
          inside.record(current());
          inside.query();
        }) == "CUDA error: operation not permitted on an event last recorded in a capturing stream");
  CHECK(refusal([&] {
          CHECK_THROWS(some.cpu());
          some.add_(1);
        }) == "CUDA error: operation failed due to a previous error during capture");
  CHECK(some.equal(torch::ones({3}, kGpu)));
}

TEST_CASE("streams of a capture have to wait for each other") {
  const OnSide on_side;
  const Tensor some = torch::ones({3}, kGpu);
  const c10::Stream fork = another();
  const auto run_on_fork = [&](bool joined) {
    auto ready = event(), done = event();
    some.add_(1);
    ready.record(current());
    ready.block(fork);
    {
      const c10::StreamGuard on_fork(fork);
      some.mul_(2);
      done.record(fork);
    }
    if (joined) done.block(current());
  };
  {
    CUDAGraph graph;
    capture(graph, [&] {
      run_on_fork(true);
      some.sub_(1);
    });
    graph.replay();
    CHECK(some.equal(torch::full({3}, 3., kGpu)));
  }
  {
    CUDAGraph graph;
    CHECK_THROWS_AS(capture(graph,
                            [&] {
                              run_on_fork(false);
                              some.sub_(1);
                            }),
                    Race);
  }
  CHECK(refusal([&] { run_on_fork(false); }) == "CUDA error: capturing stream has unjoined work");
}

TEST_CASE("other threads go on while one captures") {
  const OnSide on_side;
  const Tensor some = torch::ones({3}, kGpu);
  Tensor other;
  CUDAGraph graph;
  capture(graph, [&] {
    some.add_(1);
    std::thread([&] {
      other = torch::ones({3}, kGpu);
      other.add_(torch::ones({3}).to(kGpu));
      CHECK(other.sum().item<float>() == 6);
    }).join();
  });
  CHECK(other.sum().item<float>() == 6);
  graph.replay();
  CHECK(some.sum().item<float>() == 6);
}

TEST_CASE("a graph keeps what its capture made, and misses what was others' and has gone") {
  const OnSide on_side;
  Tensor given = torch::ones({3}, kGpu);
  const Tensor sum = torch::zeros({3}, kGpu);
  CUDAGraph graph;
  capture(graph, [&] {
    const Tensor made = given * 2;
    sum.add_(made);
  });
  graph.replay();
  CHECK(sum.sum().item<float>() == 6);
  given = Tensor();
  CHECK_THROWS_WITH_AS(graph.replay(), "race: a graph's aten::mul reads memory that was given back", Race);
}

TEST_CASE("copies between the device and page-locked memory are part of a graph, numbers of the host's are not") {
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

TEST_CASE("a graph is captured once, on a stream that is not the default one, and replayed after that") {
  CUDAGraph graph;
  const auto begin = [&] { graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal); };
  CHECK_THROWS_AS(graph.replay(), c10::Error);
  CHECK_THROWS_AS(begin(), c10::Error);
  const OnSide on_side;
  begin();
  {
    const c10::StreamGuard elsewhere(another());
    CHECK_THROWS_AS(graph.capture_end(), c10::Error);
  }
  graph.capture_end();
  CHECK_THROWS_AS(begin(), c10::Error);
}

}  // namespace
}  // namespace ddprun::fake_gpu
