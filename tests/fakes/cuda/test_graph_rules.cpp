// A capture of LibTorch's CUDAGraph on the fake device accepts and refuses the same as on a GPU.
#include "graph_test.hpp"

#include <thread>

namespace ddprun::fake_gpu {
namespace {

using at::cuda::CUDAGraph;
using torch::Tensor;

const std::string kUnsupported = "CUDA error: operation not permitted when stream is capturing";

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

TEST_CASE("a call that makes the host wait is refused in a capture, and invalidates it") {
  const OnSide on_side;
  Tensor some = torch::ones({3}, kGpu);
  auto recorded = event();
  recorded.record(current());
  CHECK(refusal([&] { some.sum().item<float>(); }) == kUnsupported);
  CHECK(refusal([&] { some.nonzero(); }) == kUnsupported);
  CHECK(refusal([&] { some.cpu(); }) == kUnsupported);
  CHECK(refusal([&] { some.copy_(torch::ones({3})); }) == kUnsupported);
  CHECK(refusal([&] { some.copy_(torch::ones({3}), true); }) == kUnsupported);
  CHECK(refusal([&] { at::index_put_(some, {torch::tensor({0, 1})}, some.slice(0, 1)); }) == kUnsupported);
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

TEST_CASE("other threads continue while one captures") {
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

TEST_CASE("a graph keeps memory of its capture, and detects other memory that was freed") {
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

TEST_CASE("a graph is captured once, on a stream that is not the default one, and replayed after that") {
  CUDAGraph graph;
  const auto begin = [&] { graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal); };
  const auto error_message = [](const std::function<void()>& body) {
    try {
      body();
    } catch (const c10::Error& error) {
      const std::string words = error.what_without_backtrace();
      return words.substr(0, words.find('.'));
    }
    return std::string();
  };
  CHECK(error_message([&] { graph.replay(); }) == "Called CUDAGraph::replay without a preceding successful capture");
  CHECK(error_message(begin) == "CUDA graphs must be captured on a non-default stream");
  const OnSide on_side;
  begin();
  CHECK(error_message([&] {
          const c10::StreamGuard elsewhere(another());
          graph.capture_end();
        }) == "Capture must end on the same stream it began on");
  graph.capture_end();
  CHECK(error_message(begin) == "This CUDAGraph instance already owns a captured graph");
}

}  // namespace
}  // namespace ddprun::fake_gpu
