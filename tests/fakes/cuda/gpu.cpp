#include "gpu.hpp"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include "fakes/cuda/machine.hpp"
#include "gpu_state.hpp"

namespace ddprun::fake_gpu {
namespace {

thread_local int device_of_thread = 0;

// CUDA stream numbers from here on belong to one device each: see stream_of.
constexpr Stream kPerDevice = 1000;

// Runs the actions whose work is now known to be done. One thread at a time: when this returns, all have run.
void let_host_know(const Clock& clock) {
  std::vector<std::function<void()>> actions;  // destroyed one by one
  static auto& turns = *new std::mutex;
  const std::lock_guard turn(turns);
  Lock lock(state().mutex);
  actions = state().host_knows(clock);
  lock.unlock();
  for (const auto& action : actions) action();
}

void mark(Event& event, const StreamState& stream) {
  event.clock = stream.clock;
  event.after = stream.pending;
  event.time = std::chrono::steady_clock::now();
}

// What the stream has begun.
std::unique_ptr<Event> now_on(Stream stream) {
  auto now = std::make_unique<Event>();
  const Lock lock(state().mutex);
  mark(*now, state().stream(stream));
  return now;
}

// A stream with a small number has no known device.
bool may_be_on(Stream stream, int device) {
  if (stream >= kPerDevice) return stream / kPerDevice - 1 == device;
  return stream > 0 || stream == -(device + 1);
}

std::vector<Stream> streams_on(int device) {
  const Lock lock(state().mutex);
  std::vector<Stream> streams;
  for (const auto& [stream, one] : state().streams) {
    if (may_be_on(stream, device)) streams.push_back(stream);
  }
  return streams;
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
  // Destroyed without the lock: the first before the end of the work is visible to others.
  std::vector<std::shared_ptr<void>> memory, late;
  Lock lock(state().mutex);
  memory.swap(work->memory);
  lock.unlock();
  memory.clear();
  lock.lock();
  late.swap(work->memory);
  work->end = std::chrono::steady_clock::now();
  work->is_done = true;
  state().changed.notify_all();
}

void do_later(const std::shared_ptr<Work>& work, std::function<void()> action) {
  std::thread([work, action = std::move(action)]() mutable {
    wait_for_turn(work);
    try {
      std::exchange(action, nullptr)();  // destroys the action before the end is visible
    } catch (const std::exception& error) {
      fail(error.what());
    }
    finish(work);
  }).detach();
}

bool is_busy(Stream stream) {
  const Lock lock(state().mutex);
  return !state().stream(stream).pending.empty();
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
  event.is_recorded = true;
  mark(event, state().stream(stream));
}

void block(Stream stream, const Event& event) {
  const Lock lock(state().mutex);
  if (!event.is_recorded) return;
  StreamState& one = state().stream(stream);
  merge(one.clock, event.clock);
  one.pending.insert(one.pending.end(), event.after.begin(), event.after.end());
}

bool is_done(const Event& event) {
  Lock lock(state().mutex);
  if (!all_done(event.after)) return false;
  lock.unlock();
  let_host_know(event.clock);
  return true;
}

bool is_done(Stream stream) {
  return is_done(*now_on(stream));
}

void synchronize(const Event& event) {
  Lock lock(state().mutex);
  state().wait(lock, event.after);
  lock.unlock();
  let_host_know(event.clock);
}

void synchronize(Stream stream) {
  synchronize(*now_on(stream));
}

void synchronize_device(int device) {
  for (const Stream stream : streams_on(device)) synchronize(*now_on(stream));
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
