// A group: a communicator of a plugin, and the thread that carries out what has been started on it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/plugin_backend.hpp"
#include "ddprun/ddprun.h"

namespace ddprun::c {

struct Outcome {
  ddprun_status status = DDPRUN_OK;
  std::string text{};
};

// Runs body() and says how it ended.
Outcome outcome_of(const std::function<void()>& body) noexcept;

// Collectives that have been started together: `body` calls them, and returns how the last one was carried out.
class Work {
 public:
  using Body = std::function<ExecutionInfo(CommBackend& backend, std::chrono::milliseconds timeout)>;
  explicit Work(Body its_body) : body(std::move(its_body)) {}

  const Body body;
  // Written before end(), read after wait().
  Outcome outcome;
  comm::Execution execution;

  void end() noexcept;
  // At most `timeout`; true if it has ended.
  bool wait(std::chrono::milliseconds timeout) const noexcept;
  // As ddprun_then.
  void then(ddprun_done_fn done, void* context) noexcept;

 private:
  enum State : uint32_t { running, awaited, ended };  // awaited: done_ is set, and end() calls it

  mutable std::atomic<uint32_t> state_{running};
  ddprun_done_fn done_ = nullptr;
  void* context_ = nullptr;
};

// Its functions may be called by any thread.
class Group {
 public:
  // Joins the ranks. Throws Error.
  explicit Group(const ddprun_group_options& options);
  ~Group();  // not by its own thread
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  bool is_own_thread() const noexcept { return std::this_thread::get_id() == thread_.get_id(); }
  // True in the process that has joined the ranks, false in a fork of it.
  bool is_in_its_process() const noexcept;

  int size() const noexcept { return backend_->size(); }
  void start(std::shared_ptr<Work> work);
  // The first failure after which nothing works.
  Outcome failure() const;
  void abort() noexcept { backend_->abort(); }
  void* alloc(std::size_t bytes);
  void free(void* memory);
  void write_collectives(const std::string& folder, const std::string& reason) const;

 private:
  using Job = std::function<void()>;

  void run();
  void submit(Job job);
  void carry_out(Work& work);
  // Runs body(), the work of a job, unless the group has failed; remembers a failure after which nothing works.
  Outcome attempt(const std::function<void()>& body);

  const pid_t process_;
  const std::chrono::milliseconds timeout_;
  std::unique_ptr<comm::PluginBackend> backend_;
  std::vector<std::pair<void*, std::shared_ptr<void>>> memory_;
  std::atomic<int> unfinished_{0};  // jobs
  mutable std::mutex mutex_;        // of all below and of memory_
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  bool stopping_ = false;
  Outcome failure_;
  std::thread thread_;
};

}  // namespace ddprun::c
