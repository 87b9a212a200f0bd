#include "gpu.hpp"

#include <utility>

#include "fakes/cuda/machine.hpp"
#include "gpu_state.hpp"

namespace ddprun::fake_gpu {
namespace {

thread_local int device_of_thread = 0;

// Streams of CUDA's own numbering from here on belong to one device each: see stream_of.
constexpr Stream kPerDevice = 1000;

void run_known(std::vector<std::function<void()>> actions) {
  for (const auto& action : actions) action();
}

}  // namespace

int device_count() {
  return static_cast<int>(testing::fake_gpus().size());
}

int current_device() {
  return device_of_thread;
}

void set_current_device(int device) {
  device_of_thread = device;
}

Stream stream_of(std::int64_t handle, int device) {
  return handle != 0 ? handle : -(device + 1);
}

std::int64_t handle_of(Stream stream) {
  return stream < 0 ? 0 : stream;
}

std::string name_of(Stream stream) {
  if (stream < 0) return "cuda:" + std::to_string(-stream - 1) + " stream 0";
  const std::string number = "stream " + std::to_string(stream);
  return stream < kPerDevice ? number : "cuda:" + std::to_string(stream / kPerDevice - 1) + " " + number;
}

std::shared_ptr<Work> queue_work(Stream stream) {
  Lock lock(state().mutex);
  StreamState& one = state().stream(stream);
  auto work = std::make_shared<Work>();
  work->after = one.pending;
  one.pending.push_back(work);
  ++one.clock[stream];
  return work;
}

void wait_for_turn(const std::shared_ptr<Work>& work) {
  Lock lock(state().mutex);
  state().wait(lock, work->after);
}

void finish(const std::shared_ptr<Work>& work) {
  const Lock lock(state().mutex);
  work->end = std::chrono::steady_clock::now();
  work->is_done = true;
  state().changed.notify_all();
}

void begin(Stream stream) {
  Lock lock(state().mutex);
  StreamState& one = state().stream(stream);
  state().wait(lock, one.pending);
  ++one.clock[stream];
  if (!state().fault.empty()) throw Race(std::exchange(state().fault, ""));
}

void when_known(Stream stream, std::function<void()> action) {
  const Lock lock(state().mutex);
  StreamState& one = state().stream(stream);
  one.unknown.push_back({one.clock[stream], std::move(action)});
}

std::shared_ptr<Event> make_event() {
  return std::make_shared<Event>();
}

void record(Event& event, Stream stream) {
  const Lock lock(state().mutex);
  const StreamState& one = state().stream(stream);
  event.clock = one.clock;
  event.after = one.pending;
  event.time = std::chrono::steady_clock::now();
}

void block(Stream stream, const Event& event) {
  const Lock lock(state().mutex);
  StreamState& one = state().stream(stream);
  merge(one.clock, event.clock);
  one.pending.insert(one.pending.end(), event.after.begin(), event.after.end());
}

bool is_done(const Event& event) {
  Lock lock(state().mutex);
  if (!all_done(event.after)) return false;
  auto actions = state().host_knows(event.clock);
  lock.unlock();
  run_known(std::move(actions));
  return true;
}

bool is_done(Stream stream) {
  Event now;
  record(now, stream);
  return is_done(now);
}

void synchronize(const Event& event) {
  Lock lock(state().mutex);
  state().wait(lock, event.after);
  auto actions = state().host_knows(event.clock);
  lock.unlock();
  run_known(std::move(actions));
}

void synchronize(Stream stream) {
  Event now;
  record(now, stream);
  synchronize(now);
}

void synchronize_device(int device) {
  std::vector<Stream> streams;
  {
    const Lock lock(state().mutex);
    for (const auto& [stream, one] : state().streams) {
      if (stream < kPerDevice ? stream > 0 || stream == -(device + 1) : stream / kPerDevice - 1 == device) {
        streams.push_back(stream);
      }
    }
  }
  for (const Stream stream : streams) synchronize(stream);
}

double elapsed(const Event& from, const Event& to) {
  const Lock lock(state().mutex);
  return std::chrono::duration<double, std::milli>(to.end() - from.end()).count();
}

void note(const std::string& line) {
  const Lock lock(state().mutex);
  state().note(line);
}

}  // namespace ddprun::fake_gpu

const char* ddprun_fake_gpu_record() {
  static std::string given;
  const ddprun::fake_gpu::Lock lock(ddprun::fake_gpu::state().mutex);
  given = ddprun::fake_gpu::state().record;
  return given.c_str();
}

void ddprun_fake_gpu_forget() {
  const ddprun::fake_gpu::Lock lock(ddprun::fake_gpu::state().mutex);
  ddprun::fake_gpu::state().record.clear();
}
