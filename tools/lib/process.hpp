// lib: what several tools need: the processes of a job, children, and their CPU time. This file: runs ddprun once as a
// child process, and measures the CPU time of other programs meanwhile.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ddprun/error.hpp"

namespace ddprun::tools {

struct ProcessPlan {
  std::vector<std::string> command;                    // argv; command[0] is a path
  std::vector<std::string> environment;                // further variables: "NAME=value"
  std::string log{};                                   // new file for its output, in a folder that may be new too
  std::optional<std::chrono::milliseconds> timeout{};  // from its start to its end
  bool echo = false;                                   // also copy its output to stderr
  bool ends_orphans = false;  // kill what it has left after its end: torchrun's ranks are not in its process group
  // Called every tenth of a second while it runs, and once after its end; true requests an early end, as SIGTERM does.
  std::function<bool()> end_early{};
};

enum class Ending { exited, ended_early, timed_out, interrupted, terminated };

struct ProcessEnd {
  Ending ending = Ending::exited;
  int code = 0;  // exit code, or 128 + signal
};

// CPU seconds of one process's part of a run, and of the machine meanwhile.
struct CpuUse {
  std::string machine;  // the boot id of its kernel: containers of one machine have the same
  double all = 0;       // of all cores, idle or not
  double busy = 0;      // of programs, and kept by a hypervisor
  double own = 0;       // of the process and its reaped descendants
};

// A child and what is known about its end.
struct ChildEnd {
  ProcessEnd process;
  std::string log;          // file with its output
  std::vector<CpuUse> cpu;  // of all parts of the run
  std::string cause{};      // of its failure, if another process of the job reported it

  bool is_good() const { return process.ending == Ending::exited && process.code == 0; }
  bool was_asked() const { return process.ending == Ending::interrupted || process.ending == Ending::terminated; }
  // Throws Error if this process was asked to end: "interrupted in WHAT", and `more`.
  void stop_if_asked(const std::string& what, const std::string& more = "") const;
  // If it did not end well: the exit code to end with, and why in words, which may be the last line of its log.
  ExitCode code() const;
  std::string why() const;
};

// Runs it to its end. SIGINT or SIGTERM to this process is passed on as SIGTERM, so the job finishes a step and
// commits. If that takes longer than `kGrace`, or on a second signal, it is killed. Its processes end with it, and with
// this process (PR_SET_PDEATHSIG; the launcher's guardian ends its ranks). Call it on the main thread, before any other
// thread starts. Throws Error(failure) if the program cannot be started or the log cannot be written.
constexpr std::chrono::milliseconds kGrace{10000};
ChildEnd run_process(const ProcessPlan& plan);

// The last non-empty line of a log: a failed run reports its cause there.
std::string last_line_of(const std::string& path);

// Measures from its construction on. Main thread; run_process() must have reaped what it started.
class CpuMeter {
 public:
  CpuMeter();
  CpuUse use() const;  // zeros where /proc/stat cannot be read

 private:
  const CpuUse begin_;  // since the start of the machine, and of the process
};

// More than this share makes a measurement doubtful.
constexpr double kDisturbing = 0.05;

// The share of a machine's CPU time, 0 to 1, that went to programs outside all parts of the run; with several machines,
// the largest. NaN if no machine was measured for at least a twentieth of a second.
double other_share(const std::vector<CpuUse>& parts);

}  // namespace ddprun::tools
