// Collectives within a CUDA graph.
#include <memory>
#include <string>
#include <vector>

#include "testing/arithmetic.hpp"
#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {
namespace {

constexpr std::size_t kCount = 5'000;

// Fills, replays, and returns what is wrong with the sum of the sums, or "".
std::string replayed(Context& context, const std::shared_ptr<void>& graph, const Image& image,
                     std::vector<unsigned char>& content, DType dtype, uint64_t seed) {
  fill(dtype, Op::max, seed, context.rank(), 0, kCount, content.data());
  image.put();
  context.place().replay(graph);
  image.get();
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto expected = reduce(dtype, Op::max, seed, context.size(), i);
    if (accepts(dtype, expected, load(dtype, content.data(), i))) continue;
    return "replay " + std::to_string(seed) + ", element " + std::to_string(i) + ": expected " +
           to_text(dtype, expected.value) + ", got " + to_text(dtype, load(dtype, content.data(), i));
  }
  return "";
}

// Two allreduces of the same memory, so that each replay has one that waits for another; between replays, one that is
// in no graph. The first one comes before the capture: a library may need set-up that a capture does not allow.
void capture(Context& context, const std::string& algorithm) {
  auto& backend = context.shared(algorithm);
  const auto dtype = common_dtype(context.settings(), algorithm);
  std::vector<unsigned char> content(kCount * size_of(dtype));
  const Image image(context.place(), content.data(), content.size());
  image.put();
  void* const memory = image.at(content.data());
  const Collective call = context.place().call(memory, memory, kCount, dtype, Op::max);
  const auto reduce_once = [&] { context.wait(backend.allreduce(call)); };
  reduce_once();
  image.get();  // waits for the replay
  const auto graph = context.place().capture([&] {
    reduce_once();
    reduce_once();
  });
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    if (const std::string fault = replayed(context, graph, image, content, dtype, seed); !fault.empty()) {
      context.fail(fault);
    }
    reduce_once();
    image.get();
  }
  context.wait(backend.barrier());
}

}  // namespace

void add_graph_cases(const Settings& settings, std::vector<Case>& cases) {
  if (!settings.capabilities.capture) return;
  for (const auto& algorithm : algorithms_of(settings)) {
    const auto dtype = common_dtype(settings, algorithm);
    if (!takes(settings, algorithm, dtype, Op::max)) continue;
    cases.push_back({.group = "graphs",
                     .name = "allreduces under " + algorithm + " that are captured into a CUDA graph and replayed",
                     .body = [=](Context& context) { capture(context, algorithm); }});
  }
}

}  // namespace ddprun::conformance
