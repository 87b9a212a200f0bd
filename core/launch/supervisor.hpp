// The launcher's side: starts the ranks of this host as child processes, passes their output on, and ends all when one
// fails.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "ddprun/error.hpp"

namespace ddprun::launch {

struct Job {
  std::vector<std::string> command;  // argv of a rank; command[0] is the program's path
  int nproc = 1;
  std::string log_dir;                    // rank<N>.log is written here, with all that a rank prints; "" for none
  std::chrono::milliseconds grace{5000};  // from a SIGINT or SIGTERM to the ranks' own end
};

// Runs the job to its end and returns its exit code. Makes the job's private folder and removes it; nothing listens.
//  - Every child has the environment DDPRUN_RANK, DDPRUN_WORLD_SIZE, DDPRUN_LOCAL_RANK, DDPRUN_LOCAL_WORLD_SIZE,
//    DDPRUN_JOB_DIR, DDPRUN_LAUNCHER_PID, where the launcher's stderr is a terminal DDPRUN_TTY (its columns), and a
//    process group of its own; it must call follow_launcher() first.
//  - Rank 0's output passes through as it is; lines of the others carry "[rank1] ".
//  - The first rank that fails (a signal, an exit code other than 0, a reported failure, or stopped for 2 s) ends the
//  job
//    within half a second; the last line names rank, host, pid, step, phase, bucket and cause, the first cause and not
//    its echoes. A signal gives 5, else the code is that of the first cause.
//  - First SIGINT or SIGTERM: the ranks finish a common step and commit, at most `grace`; before the first step they
//  end at
//    once. 130 or 143. A second one ends at once.
//  - What the ranks start lives no longer than they, as long as it stays in their process groups. This holds even where
//  the
//    launcher itself is killed.
// Call it on the main thread, while there is no other: a child's PR_SET_PDEATHSIG watches the thread that spawned it,
// and the launcher forks. Throws Error(failure) where the ranks cannot be started.
ExitCode supervise(const Job& job);

// A rank's first act: dies with its launcher (PR_SET_PDEATHSIG), and exits at once where it is already gone. Does
// nothing without DDPRUN_LAUNCHER_PID.
void follow_launcher();

// A rank's last words before it exits with a failure: leaves code and text in the job's folder, so that the launcher
// can tell the first cause from its echoes. Does nothing without a job folder. Any thread.
void report_failure(const std::string& job_dir, int rank, ExitCode code, const std::string& message) noexcept;

}  // namespace ddprun::launch
