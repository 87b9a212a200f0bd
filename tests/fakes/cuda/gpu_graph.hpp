// CUDA graphs on the fake GPU. What streams are given between begin_capture() and end_capture() is remembered,
// and done by each replay. A real capture computes nothing; here kernels do run in it, for the shapes of what they
// make, and its end puts back all memory that they wrote to. Whether the streams of a capture wait for each other is
// held against clocks of its own, as they have no past and no future but in a replay.
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

// What CUDA does not do because of a capture, in its words. Most of these spoil the capture: all that follows in it
// is refused, and its end too.
struct Refused : std::runtime_error {
  explicit Refused(CaptureError error);
  CaptureError error;
};

class Graph;

// In the mode cudaStreamCaptureModeThreadLocal: this thread may not ask for, or wait for, anything on a GPU meanwhile;
// others may, but for what is captured. A stream that waits for an event of the capture takes part in it. Waits for
// what the stream had before. Throws Refused.
void begin_capture(Stream stream);
// Throws Refused; the capture is over then, unless it was another one's to end.
std::shared_ptr<Graph> end_capture(Stream stream);
bool is_capturing(Stream stream);
// Throws Refused in a thread that captures: for what CUDA holds to be unsafe there, such as cudaMalloc.
void refuse_in_capture();

// What a replay does for a piece, in two parts: the function is called as the replay is queued, with the replay's
// stream; what it returns, as the GPU comes to the piece.
using Launch = std::function<std::function<void()>(Stream)>;
// Of the piece that begin() counted last on a capturing stream.
void on_launch(Stream stream, Launch launch);
// Runs `work`; where the stream is capturing, each replay runs it too, as the piece that begin() counted last.
void compute(Stream stream, std::function<void()> work);

// One piece of work on the stream, done by a thread of its own. The graph lives until that has ended. Throws Race,
// also for memory of others that was given back since the capture, and Refused.
void replay(const std::shared_ptr<Graph>& graph, Stream stream);

}  // namespace ddprun::fake_gpu
