// Call stacks of this process: of a thread that hangs, and of a thread that crashes.
#pragma once

#include <pthread.h>

#include <functional>
#include <string>
#include <vector>

namespace ddprun::run {

// A function that was called.
struct Frame {
  std::string function;  // demangled; "" if the file has no symbol for it
  std::string file;      // the library or program that holds it: "libddprun_model_resnet18.so"
};

// One frame in each line, the innermost first, numbered: "  #0 fc1_backward (libtorch_cpu.so)".
std::string text_of(const std::vector<Frame>& stack);

// What the calling thread executes, without this function.
std::vector<Frame> this_stack();

// What `thread` of this process executes now, the innermost function first. Interrupts it with a signal for some
// microseconds. Empty if it does not answer within a second. Thread-safe. Reading the symbols of a large library takes
// up to seconds.
std::vector<Frame> stack_of(pthread_t thread);

// From now on, a signal that an error in this process causes (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT) first runs
// `report` on a separate thread, for at most ten seconds, with the stack of the thread that crashed, the innermost
// function first. Then the signal ends the process as before. Call it once, on the main thread; its stack may overflow.
void report_crashes(std::function<void(int signal, const std::vector<Frame>& stack)> report);

// The plugin whose function crashed, and that function: "fetch (libddprun_dataset_faces.so)". The outermost frame of
// the innermost plugin, so it is the function that ddprun called. "" if no plugin is on the stack.
std::string plugin_in(const std::vector<Frame>& stack);

}  // namespace ddprun::run
