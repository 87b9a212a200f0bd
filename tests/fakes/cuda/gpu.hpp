// A GPU without a GPU, shared by the stand-ins for Torch's CUDA, the CUDA runtime and NCCL: streams, events, and who
// may touch which memory when. Memory is the host's, and what Torch queues is computed at once, on the thread that
// queues it; so nothing would ever show that a wait is missing. Therefore every access is held against vector clocks,
// as a race detector does (Lamport 1978, Mattern 1989): a stream knows what it waited for, and no more.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace ddprun::fake_gpu {

// Two pieces of work that no event orders, or memory given back while a stream may still use it.
struct Race : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Those that machine.hpp tells of.
int device_count();
// Of this thread.
int current_device();
void set_current_device(int device);

// One for the whole process: CUDA's handle as a number; the default streams, whose handle is 0, are told apart here.
using Stream = std::int64_t;
Stream stream_of(std::int64_t handle, int device);
std::int64_t handle_of(Stream stream);
// "cuda:1 stream 0"; a stream of the CUDA runtime's: "stream 101".
std::string name_of(Stream stream);

// What a thread of its own does for a stream, such as a collective. Whoever comes later on the stream waits for it.
class Work;
std::shared_ptr<Work> queue_work(Stream stream);
// Waits for what the work waits for. Called by the thread that does it.
void wait_for_turn(const std::shared_ptr<Work>& work);
void finish(const std::shared_ptr<Work>& work);
// Has a thread of its own do all that: wait, act, finish.
void do_later(const std::shared_ptr<Work>& work, std::function<void()> action);
// Whether such work is not done yet, so that begin() would wait.
bool is_busy(Stream stream);

// Before each piece of work that is computed at once: waits until the stream has got there, and counts the piece.
// Throws Race where memory was given back too early. This and what follows throws Refused (gpu_graph.hpp) where a
// capture forbids it.
void begin(Stream stream);
// The piece that begin() (or queue_work()) counted last reads or writes [memory, memory + bytes). Throws Race.
void access(Stream stream, const void* memory, std::size_t bytes, bool writes, const std::string& what);

// The next begin() throws Race with this text: for what is found where nothing can be thrown.
void fail(const std::string& race);

// Memory that comes and goes, and which stream it came on.
void allocated(const void* memory, std::size_t bytes, Stream stream);
// `release` runs when nobody needs the memory any more: as a rule at once.
void freed(const void* memory, std::function<void()> release);
// The memory is used by `stream` too, and must not be given away before that is done.
void used_on(const void* memory, Stream stream);

// `action` runs when the host has waited for what the stream had begun by now: the end of an asynchronous copy.
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
// But for what is being captured.
void wait_for_device(int device);
// Milliseconds between the ends of what two events marked.
double elapsed(const Event& from, const Event& to);

// A line of the record. With DDPRUN_FAKE_GPU_LOG=<path> it goes to the file <path>.<pid> too.
void note(const std::string& line);

}  // namespace ddprun::fake_gpu

// For tests: the record so far, a line each, and a record that begins anew. What was given lives until the next call.
extern "C" {
const char* ddprun_fake_gpu_record();
void ddprun_fake_gpu_forget();
}
