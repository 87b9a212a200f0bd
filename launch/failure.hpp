// Failure records: the errors that ranks report, as files in the job's folder.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <tuple>

#include "ddprun/error.hpp"

namespace ddprun::launch {

struct Failure {
  int rank = 0;
  ExitCode code = ExitCode::failure;
  std::chrono::nanoseconds time{};  // CLOCK_MONOTONIC, which is the same for all processes of a host
  std::string message;
};
inline auto fields(Failure& failure) {  // for ByteWriter and ByteReader
  return std::tie(failure.rank, failure.code, failure.time, failure.message);
}

// A rank calls this before it exits with a failure: writes code and text to the job's folder, so that the launcher can
// find the first cause. Does nothing without a job folder. Thread-safe.
void report_failure(const std::string& job_dir, int rank, ExitCode code, const std::string& message) noexcept;

// Reports a failure of this process: to our own launcher if it is one of its ranks (the launcher prints the first cause
// once, at the end), otherwise to stderr; and to the file TORCHELASTIC_ERROR_FILE if torchrun names one. Returns
// `code`.
ExitCode report_failure(ExitCode code, const std::string& message);

// What `rank` reported: the first report if there are several. Nothing without a report. Throws as read_whole().
// Thread-safe.
std::optional<Failure> failure_of(const std::string& job_dir, int rank);
std::optional<Failure> first_failure(const std::string& job_dir);

// A rank that a signal ends because of its own error reports where it was: "fetch (libddprun_dataset_faces.so)". Any
// thread. Does not throw.
void report_crash(const std::string& job_dir, int rank, const std::string& where) noexcept;
// What `rank` reported; "" if nothing. Each report is read once: another process may take the place of the rank.
std::string crash_of(const std::string& job_dir, int rank);

}  // namespace ddprun::launch
