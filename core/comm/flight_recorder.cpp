#include "comm/flight_recorder.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "record/run_dir.hpp"

namespace ddprun::comm {
namespace {

template <class Clock>
double seconds() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// The steady clock at the kernel's last tick, a few milliseconds ago. Reading it takes a fifth of the time, which
// counts: a small collective in shared memory takes 0.2 us.
double last_tick() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

using nlohmann::ordered_json;

// Keys that do not apply are left out.
ordered_json object_of(const RecordedCall& call) {
  const CallShape& shape = call.shape;
  ordered_json object{{"number", shape.number}, {"op", name_of(shape.kind)}};
  if (has_data(shape)) {
    object.update({{"dtype", name_of(shape.dtype)}, {"count", shape.count}});
    if (reduces(shape.kind)) object["reduction"] = name_of(shape.op);
    if (shape.kind == Kind::broadcast) object["root"] = shape.root;
    if (shape.bucket >= 0) object["bucket"] = shape.bucket;
    object["memory"] = name_of(shape.memory);
  }
  object.update({{"step", call.step}, {"state", name_of(call.state)}, {"start", call.start}});
  if (call.state != CallState::started) object.update({{"end", call.end()}, {"duration", call.duration}});
  return object;
}

ordered_json object_of(const RankCollectives& file) {
  return {{"rank", file.rank},       {"world", file.world},   {"host", file.host},      {"pid", file.pid},
          {"backend", file.backend}, {"reason", file.reason}, {"written", file.written}};
}

// Error messages of other programs may be in it, in any encoding.
std::string line_of(const ordered_json& object) {
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

const char* name_of(CallState state) {
  constexpr const char* names[] = {"started", "queued", "finished", "failed"};
  return names[static_cast<std::size_t>(state)];
}

void FlightRecorder::start(const CallShape& shape) noexcept {
  const RecordedCall call{.shape = shape, .step = step(), .start = seconds<std::chrono::steady_clock>()};
  const std::lock_guard lock(mutex_);
  ring_[shape.number % kCapacity] = call;
}

void FlightRecorder::end(uint64_t number, CallState state) noexcept {
  const double now = last_tick();
  const std::lock_guard lock(mutex_);
  RecordedCall& call = ring_[number % kCapacity];
  if (call.shape.number != number) return;
  call.state = state;
  call.duration = std::max(now - call.start, 0.0);
}

std::vector<RecordedCall> FlightRecorder::calls() const {
  const double epoch = seconds<std::chrono::system_clock>() - seconds<std::chrono::steady_clock>();
  std::vector<RecordedCall> calls;
  {
    const std::lock_guard lock(mutex_);
    std::ranges::copy_if(ring_, std::back_inserter(calls),
                         [](const RecordedCall& call) { return call.shape.number != 0; });
  }
  for (RecordedCall& call : calls) call.start += epoch;
  std::ranges::sort(calls, {}, [](const RecordedCall& call) { return call.shape.number; });
  return calls;
}

std::string collectives_path(const std::string& run_dir, int64_t rank) {
  return record::file_in(run_dir, kCollectivesPrefix + std::to_string(rank) + ".json");
}

void write_collectives(const std::string& run_dir, const RankCollectives& collectives) {
  std::string text = line_of(object_of(collectives));
  text.back() = ',';
  text += "\"calls\":[";
  const char* before = "\n";
  for (const RecordedCall& call : collectives.calls) {  // a line each
    text += before + line_of(object_of(call));
    before = ",\n";
  }
  text += "\n]}\n";
  replace_file(collectives_path(run_dir, collectives.rank), text);
}

}  // namespace ddprun::comm
