#include "gpu_graph.hpp"

#include <algorithm>
#include <utility>

#include "gpu_capture.hpp"

namespace ddprun::fake_gpu {
namespace {

// Throws if the memory was freed since the capture.
void require_alive(const Graph::Use& use) {
  const Lock lock(state().mutex);
  const Block* const block = state().block_at(use.begin);
  if (block != nullptr && block->number == use.block) return;
  const std::string race =
      "race: a graph's " + use.what + (use.writes ? " writes" : " reads") + " memory that was given back";
  state().note(race);
  throw Race(race);
}

}  // namespace

void begin_capture(Stream stream) {
  Lock lock(state().mutex);
  if (stream < 0 || state().capture_of(stream) != nullptr) throw Refused(CaptureError::unsupported);
  state().wait(lock, state().stream(stream).pending);
  state().captures.push_back(std::make_shared<Capture>(stream));
  state().note(name_of(stream) + " begins a capture");
}

std::shared_ptr<Graph> end_capture(Stream stream) {
  std::shared_ptr<Graph> graph;  // may be destroyed: without the lock
  const Lock lock(state().mutex);
  const auto capture = state().capture_of(stream);
  if (capture == nullptr) throw Refused(CaptureError::illegal_state);
  if (capture->origin != stream) capture->refuse(CaptureError::unmatched);
  if (capture->thread != std::this_thread::get_id()) capture->refuse(CaptureError::wrong_thread);
  std::erase(state().captures, capture);
  capture->put_back();
  graph = std::move(capture->graph);
  capture->require_valid();
  if (capture->has_unjoined()) capture->refuse(CaptureError::unjoined);
  state().note(name_of(stream) + " ends a capture of " + std::to_string(graph->nodes.size()) + " pieces");
  return graph;
}

bool is_capturing(Stream stream) {
  const Lock lock(state().mutex);
  return state().capture_of(stream) != nullptr;
}

void refuse_in_capture() {
  const Lock lock(state().mutex);
  state().host_asks(nullptr);
}

void on_launch(Stream stream, Launch launch) {
  const Lock lock(state().mutex);
  state().capture_of(stream)->on_launch(stream, std::move(launch));
}

void compute(Stream stream, std::function<void()> work) {
  work();
  if (is_capturing(stream)) on_launch(stream, [work = std::move(work)](Stream) { return work; });
}

void replay(const std::shared_ptr<Graph>& graph, Stream stream) {
  if (is_capturing(stream)) throw Refused(CaptureError::unsupported);
  const auto work = queue_work(stream);
  std::vector<std::function<void()>> turns;
  try {
    for (const Graph::Node& node : graph->nodes) {
      for (const Graph::Use& use : node.uses) {
        require_alive(use);
        access(stream, reinterpret_cast<const void*>(use.begin), use.bytes, use.writes, use.what + " in a graph");
      }
    }
    for (const Graph::Node& node : graph->nodes) {
      if (node.launch) turns.push_back(node.launch(stream));
    }
  } catch (...) {
    finish(work);
    throw;
  }
  note(name_of(stream) + " replays " + std::to_string(graph->nodes.size()) + " pieces");
  do_later(work, [graph, turns = std::move(turns)] {
    for (const auto& turn : turns) turn();
  });
}

}  // namespace ddprun::fake_gpu
