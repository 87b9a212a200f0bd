// Writes the last collectives of this rank into the run folder: when the rank fails, and on SIGUSR2.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "base/log.hpp"
#include "comm/flight_recorder.hpp"
#include "launch/signal_thread.hpp"
#include "launch/world.hpp"

namespace ddprun::run {

// The file is collectives-rank<N>.json (docs/reports.md). Between hold_signal(SIGUSR2) and this object, the signal is
// kept for it. Does not throw: what cannot be written is a warning.
class CollectivesFile {
 public:
  // recorder: null for a rank alone, which has no collectives.
  CollectivesFile(std::shared_ptr<const comm::FlightRecorder> recorder, const launch::World& world, std::string backend,
                  std::string run_dir);
  // Writes the file if an exception passes, unless write() was called.
  ~CollectivesFile();

  // Any thread.
  void write(const std::string& reason) noexcept;

 private:
  void on_signal(int value);
  void write_file(const std::string& reason, log::Level level) noexcept;

  const std::shared_ptr<const comm::FlightRecorder> recorder_;
  const int rank_, world_;
  const std::string backend_;
  const std::string run_dir_;
  const int exceptions_before_;
  std::mutex mutex_;  // the signal's thread, and the training's
  std::atomic<bool> failed_{false};
  launch::SignalThread signals_;  // last: it uses the others
};

}  // namespace ddprun::run
