// Failure records: a rank's last words, as files in the job's folder. report_failure() of supervisor.hpp writes them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "ddprun/error.hpp"

namespace ddprun::launch {

struct Failure {
  int rank = 0;
  ExitCode code = ExitCode::failure;
  std::chrono::nanoseconds time{};  // CLOCK_MONOTONIC, which all processes of a host share
  std::string message;
};

// What `rank` reported, or the first of all reports of the job. Nothing where there is none. Throws Error(failure) when
// the record cannot be read. Any thread.
std::optional<Failure> failure_of(const std::string& job_dir, int rank);
std::optional<Failure> first_failure(const std::string& job_dir);

}  // namespace ddprun::launch
