// Runs a function in a child process, so that this process stays free of its side effects; and threads without signals.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "ddprun/error.hpp"

namespace ddprun {

// The exception that is being handled. One that is no Error becomes an Error(failure).
Error current_error();

// Calls `work` in a child process and returns its result. The libraries that it loads and the threads that it starts
// end with the child. Throws the Error that `work` throws; Error(failure) for another exception, or if the child cannot
// be started, crashes, or calls exit(): then no exit handler of this process runs. Call it while there is only one
// thread.
int64_t run_in_subprocess(const std::function<int64_t()>& work);
// The same for a text. A child that works longer than `limit` is ended: Error(failure), "no answer within 10 s".
std::string text_from_subprocess(const std::function<std::string()>& work, std::optional<std::chrono::seconds> limit);

// Starts a thread with all signals blocked: they are for the threads of the program.
template <class Thread = std::thread>
Thread quiet_thread(auto body) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Thread thread(std::move(body));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

// Waits for the end of a child process, and returns its status as waitpid() does.
int wait_for_child(pid_t child);

}  // namespace ddprun
