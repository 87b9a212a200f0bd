// Notices that a step, an evaluation or a checkpoint takes long, so that the user sees that the run is alive.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "ddprun/phase.hpp"

namespace ddprun::run {

class LongWork {
 public:
  // Called once a second on a separate thread while one piece of work lasts, from its second second on: "step 12", its
  // phase, and how long it has lasted. Must not throw.
  using Report = std::function<void(const std::string& what, Phase phase, std::chrono::seconds age)>;

  explicit LongWork(Report report);
  ~LongWork();
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;

  // Any thread. A phase of a step begins; an evaluation and a checkpoint are work of their own.
  void on_phase(Phase phase, int64_t step);
  // No work goes on. After the call no report runs, until the next phase begins.
  void pause();

 private:
  using Clock = std::chrono::steady_clock;

  void run();

  const Report report_;
  std::mutex mutex_;  // of all below, held while `report_` runs
  std::condition_variable changed_;
  bool stopping_ = false, paused_ = true;
  int64_t step_ = 0;
  Phase phase_ = Phase::start;
  Clock::time_point since_ = Clock::now();
  std::thread thread_;  // last: it uses the others
};

}  // namespace ddprun::run
