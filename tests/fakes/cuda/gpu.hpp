// A fake GPU, shared by the fakes of Torch's CUDA, the CUDA runtime and NCCL: streams, events, and the order of memory
// accesses. Memory is host memory, and Torch's work is computed immediately, on the thread that queues it, so a missing
// wait would have no effect. Therefore every access is checked against vector clocks, as in a race detector (Lamport
// 1978, Mattern 1989): a stream knows only what it has waited for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace ddprun::fake_gpu {

// Two pieces of work that no event orders, or memory freed while a stream may still use it.
struct Race : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The GPUs of machine.hpp.
int device_count();
// Of this thread.
int current_device();
void set_current_device(int device);

// A number for each stream of the process: CUDA's handle; default streams, whose handle is 0, have different numbers.
using Stream = std::int64_t;
Stream stream_of(std::int64_t handle, int device);
std::int64_t handle_of(Stream stream);
// "cuda:1 stream 0"; for a stream of the CUDA runtime: "stream 101".
std::string name_of(Stream stream);

// Work that a separate thread does for a stream, such as a collective. Later work on the stream waits for it.
class Work;
std::shared_ptr<Work> queue_work(Stream stream);
// Waits for the work's dependencies. Called by the thread that does the work.
void wait_for_turn(const std::shared_ptr<Work>& work);
void finish(const std::shared_ptr<Work>& work);
// Runs all of it in a separate thread: wait, act, finish.
void do_later(const std::shared_ptr<Work>& work, std::function<void()> action);
// Whether such work is still pending, so that begin() would wait.
bool is_busy(Stream stream);

// Call it before each piece of work that is computed immediately: waits until the stream reaches it, and counts the
// piece. Throws Race if memory was freed too early.
void begin(Stream stream);
// The piece that begin() (or queue_work()) counted last reads or writes [memory, memory + bytes). Throws Race.
void access(Stream stream, const void* memory, std::size_t bytes, bool writes, const std::string& what);

// The next begin() throws Race with this text: for races found where nothing can be thrown.
void fail(const std::string& race);

// Allocated memory, with the stream of its allocation.
void allocated(const void* memory, std::size_t bytes, Stream stream);
// `release` runs when the memory is no longer needed: usually immediately.
void freed(const void* memory, std::function<void()> release);
// `stream` also uses the memory, so it must not be reused before that is done.
void used_on(const void* memory, Stream stream);

// `action` runs when the host has waited for all work of the stream so far: the end of an asynchronous copy.
void when_known(Stream stream, std::function<void()> action);

class Event;
std::shared_ptr<Event> make_event();
void record(Event& event, Stream stream);
void block(Stream stream, const Event& event);
bool is_done(const Event& event);
bool is_done(Stream stream);
// The host waits.
void synchronize(const Event& event);
void synchronize(Stream stream);
void synchronize_device(int device);
// Milliseconds between two events.
double elapsed(const Event& from, const Event& to);

// Adds a line to the record. With DDPRUN_FAKE_GPU_LOG=<path> it also goes to the file <path>.<pid>.
void note(const std::string& line);

}  // namespace ddprun::fake_gpu

// For tests: returns the record, one entry per line, and starts a new one. The result lives until the next call.
extern "C" {
const char* ddprun_fake_gpu_record();
void ddprun_fake_gpu_forget();
}
