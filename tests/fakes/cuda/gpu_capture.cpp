#include "gpu_capture.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ddprun::fake_gpu {
namespace {

const char* error_message(CaptureError error) {
  switch (error) {
    case CaptureError::illegal_state: return "the operation cannot be performed in the present state";
    case CaptureError::unsupported: return "operation not permitted when stream is capturing";
    case CaptureError::invalidated: return "operation failed due to a previous error during capture";
    case CaptureError::merge: return "operation would result in a merge of separate capture sequences";
    case CaptureError::unmatched: return "capture was not ended in the same stream as it began";
    case CaptureError::unjoined: return "capturing stream has unjoined work";
    case CaptureError::isolation: return "dependency created on uncaptured work in another stream";
    case CaptureError::implicit: return "operation would make the legacy stream depend on a capturing blocking stream";
    case CaptureError::captured_event: return "operation not permitted on an event last recorded in a capturing stream";
    case CaptureError::wrong_thread: return "attempt to terminate a thread-local capture sequence from another thread";
  }
  return "a CUDA error";
}

}  // namespace

Refused::Refused(CaptureError error_) : std::runtime_error(error_message(error_)), error(error_) {}

void Capture::refuse(CaptureError error_) {
  is_spoilt = true;
  state().note(std::string("refused: ") + error_message(error_));
  throw Refused(error_);
}

void Capture::require_valid() const {
  if (is_spoilt) throw Refused(CaptureError::invalidated);
}

void Capture::begin(Stream stream) {
  require_valid();
  Lane& lane = lanes.at(stream);
  ++lane.clock[stream];
  lane.node = graph->nodes.size();
  graph->nodes.emplace_back();
}

void Capture::access(const Block& block, Access now) {
  const Lane& lane = lanes.at(now.stream);
  now.piece = lane.clock.at(now.stream);
  const std::size_t bytes = now.end - now.begin;
  graph->nodes[lane.node].uses.push_back({now.begin, bytes, now.writes, now.what, block.number});
  if (now.writes && !owns(block)) {
    const bool is_saved = std::any_of(saved.begin(), saved.end(), [&](const Saved& before) {
      return before.begin == now.begin && before.bytes.size() >= bytes;
    });
    if (!is_saved) saved.push_back({block.number, now.begin, {reinterpret_cast<const char*>(now.begin), bytes}});
  }
  order(accesses[block.number], std::move(now), lane.clock);
}

void Capture::on_launch(Stream stream, Launch launch) {
  graph->nodes[lanes.at(stream).node].launch = std::move(launch);
}

void Capture::record(Event& event, Stream stream, const std::shared_ptr<Capture>& self) const {
  require_valid();
  event.clock = lanes.at(stream).clock;
  event.after.clear();
  event.capture = self;
}

void Capture::join(Stream stream, const Event& event) {
  require_valid();
  if (stream < 0) refuse(CaptureError::implicit);
  merge(lanes[stream].clock, event.clock);
}

void Capture::forget(const Block& block) {
  std::erase_if(saved, [&](const Saved& one) { return one.block == block.number; });
}

void Capture::put_back() {
  for (auto one = saved.rbegin(); one != saved.rend(); ++one) {
    std::memcpy(reinterpret_cast<void*>(one->begin), one->bytes.data(), one->bytes.size());
  }
  for (const auto& [begin, block] : state().blocks) {
    if (owns(block)) std::memset(reinterpret_cast<void*>(begin), 0xff, block.end - begin);
  }
}

bool Capture::has_unjoined() const {
  Clock joined = lanes.at(origin).clock;
  return std::any_of(lanes.begin(), lanes.end(), [&](const auto& one) {
    const auto& [stream, lane] = one;
    const auto last = lane.clock.find(stream);
    return last != lane.clock.end() && joined[stream] < last->second;
  });
}

}  // namespace ddprun::fake_gpu
