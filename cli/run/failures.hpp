// What a rank leaves behind when it fails or hangs: its stack, the plugin that was called or the exception that nothing
// caught, and its last collectives.
#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "base/log.hpp"
#include "cli/run/connections.hpp"
#include "comm/flight_recorder.hpp"
#include "launch/signals.hpp"
#include "launch/world.hpp"

namespace ddprun::run {

// From now on this process reports its crashes. Call it once, on the main thread, before other threads exist.
// `rendezvous` must live as long as the process.
void report_crashes(const launch::World& world, const Rendezvous& rendezvous);

// Writes the last collectives of this rank into the run folder: when the rank fails, and on SIGUSR2. If the launcher
// asks for it with SIGUSR2, logs the innermost part of the training thread's stack, and appends all of it to the rank's
// log file. The file is collectives-rank<N>.json (docs/reports.md). Call hold_usr2() before: the signal then
// stays pending until this object exists. Does not throw: if the file cannot be written, it logs a warning.
class CollectivesFile {
 public:
  // Call it on the training thread. recorder: null for world size 1, which has no collectives. log_path: rank<N>.log.
  CollectivesFile(std::shared_ptr<const comm::FlightRecorder> recorder, const launch::World& world, std::string backend,
                  std::string run_dir, std::string log_path);
  // Writes the file if an exception destroys this object, unless write() was called.
  ~CollectivesFile();

  // Any thread. Names the file at level info if `code` says that the ranks may have diverged, otherwise at level debug.
  void write(const std::string& reason, ExitCode code) noexcept;

 private:
  void on_signal(int value);
  void show_stack() const;
  void write_file(const std::string& reason, log::Level level) noexcept;

  const std::shared_ptr<const comm::FlightRecorder> recorder_;
  comm::RankCollectives file_;
  const std::string run_dir_, log_path_;
  const int exceptions_before_;
  const pthread_t training_thread_;
  std::mutex mutex_;  // between the signal's thread and the training thread
  std::atomic<bool> failed_{false};
  launch::Usr2Thread signals_;  // last: it uses the others
};

}  // namespace ddprun::run
