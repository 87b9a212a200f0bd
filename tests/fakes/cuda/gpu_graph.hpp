// CUDA graphs on the fake GPU. Work queued between begin_capture() and end_capture() is recorded, and run by each
// replay. A real capture computes nothing; here kernels do run in it, because their results' shapes are needed, and its
// end restores all memory that they wrote to. A capture has separate clocks to check whether its streams wait for each
// other, because its work is ordered with other work only in a replay.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>

#include "gpu.hpp"

namespace ddprun::fake_gpu {

// By the numbers of cudaError_t.
enum class CaptureError : int {
  illegal_state = 401,
  unsupported = 900,
  invalidated = 901,
  merge = 902,
  unmatched = 903,
  unjoined = 904,
  isolation = 905,
  implicit = 906,
  captured_event = 907,
  wrong_thread = 908,
};

// Calls that CUDA refuses because of a capture, with its messages. Most of them invalidate the capture: all later calls
// in it are refused, and so is its end.
struct Refused : std::runtime_error {
  explicit Refused(CaptureError error);
  CaptureError error;
};

class Graph;

// In the mode cudaStreamCaptureModeThreadLocal: this thread may not query or wait for anything on a GPU meanwhile;
// other threads may, except for captured work. A stream that waits for an event of the capture joins it. Waits for
// earlier work of the stream. Throws Refused.
void begin_capture(Stream stream);
// Throws Refused; the capture is then over, unless another thread must end it.
std::shared_ptr<Graph> end_capture(Stream stream);
bool is_capturing(Stream stream);
// Throws Refused in a capturing thread: for calls that CUDA considers unsafe there, such as cudaMalloc.
void refuse_in_capture();

// The two parts of a piece in a replay: the function is called when the replay is queued, with the replay's stream; the
// function that it returns is called when the GPU reaches the piece.
using Launch = std::function<std::function<void()>(Stream)>;
// For the piece that begin() counted last on a capturing stream.
void on_launch(Stream stream, Launch launch);
// Runs `work`; if the stream is capturing, each replay also runs it, as the piece that begin() counted last.
void compute(Stream stream, std::function<void()> work);

// Queues a replay as one piece of work on the stream, done by a separate thread. The graph lives until its end. Throws
// Race, also for other memory that was freed since the capture, and Refused.
void replay(const std::shared_ptr<Graph>& graph, Stream stream);

}  // namespace ddprun::fake_gpu
