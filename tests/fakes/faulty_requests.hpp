// The communicator of the fake "faulty": a queue of requests, and the thread that carries them out on the communicator
// of a blocking plugin.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ddprun/plugin/comm_plugin.h"

namespace fakes {

class Communicator {
 public:
  explicit Communicator(const ddprun_comm_plugin& its_plugin) : plugin(its_plugin) {}
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  bool is(const char* name) const { return fault == name; }
  // Starts the thread. Before that, meet() is a barrier on the calling thread; afterwards in the queue.
  void start();
  ddprun_status meet();

  // Why nothing works any more, or DDPRUN_OK.
  ddprun_status broken();
  ddprun_request* queue(ddprun_collective_fn function, const ddprun_collective& call);
  ddprun_request* queue(const ddprun_exchange& call);
  ddprun_request* finished();
  bool is_done(ddprun_request* request);
  // After a timeout it also ends the collective, because the caller's buffers must not be used any more.
  ddprun_status wait(ddprun_request* request, std::chrono::milliseconds timeout);

  const ddprun_comm_plugin& plugin;
  ddprun_comm* inner = nullptr;
  std::string fault = "none";
  std::string error;  // of the last failure
  // For some faults only.
  const std::chrono::steady_clock::time_point created = std::chrono::steady_clock::now();
  std::chrono::milliseconds deadline{0};
  int rank = 0;
  std::size_t size = 1;
  std::function<void(const char*)> log;
  std::thread::id allocated_by;
  volatile char read = 0;

 private:
  struct Request {
    ddprun_collective_fn function = nullptr;
    ddprun_collective call = {};
    const ddprun_collective* callers = nullptr;
    ddprun_exchange exchange = {};  // with struct_size: instead of the call
    std::vector<ddprun_block> send, recv;
    bool done = false;
    ddprun_status status = DDPRUN_OK;
    std::string error;
  };

  static Request& of(ddprun_request* request) { return *reinterpret_cast<Request*>(request); }
  void work();
  ddprun_status run(ddprun_collective_fn function, const ddprun_collective& call, std::string& text);
  ddprun_request* enter(Request* request);
  ddprun_status run_exchange(Request& request);
  void write_later(const Request& request);
  ddprun_status end(ddprun_status status, ddprun_request* request, std::string& text);
  void spoil(Request& request);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request*> queue_;
  bool leaving_ = false;
  ddprun_status broken_ = DDPRUN_OK;
  std::thread worker_;
};

}  // namespace fakes
