#include "launch/failure.hpp"

#include <cstdlib>
#include <stdexcept>

#include "base/log.hpp"
#include "ddprun/error.hpp"
#include "launch/job_folder.hpp"
#include "launch/net/bytes.hpp"

namespace ddprun::launch {
namespace {

constexpr const char* kFirst = "failure.first";

std::string name_for(int rank) {
  return "failure." + std::to_string(rank);
}

std::optional<Failure> read(const std::string& path) try {
  const auto record = read_whole(path);
  if (!record) return std::nullopt;
  Failure failure;
  ByteReader(*record).fields(fields(failure));
  return failure;
} catch (const std::system_error& error) {
  throw Error(ExitCode::failure, error.what());
} catch (const std::out_of_range&) {
  throw Error(ExitCode::failure, path + ": not a failure record");
}

}  // namespace

std::optional<Failure> failure_of(const std::string& job_dir, int rank) {
  return read(job_dir + "/" + name_for(rank));
}
std::optional<Failure> first_failure(const std::string& job_dir) {
  return read(job_dir + "/" + kFirst);
}

void report_failure(const std::string& job_dir, int rank, ExitCode code, const std::string& message) noexcept try {
  if (job_dir.empty()) return;
  Failure failure{rank, code, std::chrono::steady_clock::now().time_since_epoch(), message};
  const std::string record = ByteWriter().fields(fields(failure)).bytes();
  // Writes the rank's own record first: a reader of the second file may want to read this one. If it cannot be written
  // (a full disk), this is not reported: the launcher still has the exit code.
  (void)publish(job_dir, name_for(rank), record);
  (void)publish(job_dir, kFirst, record);
} catch (const std::exception&) {
  // Out of memory while reporting a failure: the exit code must do.
}

ExitCode report_failure(ExitCode code, const std::string& message) {
  const char* job_dir = std::getenv("DDPRUN_JOB_DIR");
  const char* rank = std::getenv("DDPRUN_RANK");
  if (job_dir != nullptr && rank != nullptr) {
    report_failure(job_dir, std::atoi(rank), code, message);
  } else if (code == ExitCode::usage || code == ExitCode::plugin) {
    log::always(message);  // the lines begin with the location in the config
  } else if (code == ExitCode::interrupted || code == ExitCode::terminated) {
    log::always("ddprun: " + message);
  } else {
    log::always("ddprun: failed: " + message);
  }
  return code;
}

void report_crash(const std::string& job_dir, int rank, const std::string& where) noexcept try {
  if (!job_dir.empty()) (void)publish(job_dir, "crash." + std::to_string(rank), where);
} catch (const std::exception&) {
  // The signal is reported without it.
}

std::string crash_of(const std::string& job_dir, int rank) try {
  return read_whole(job_dir + "/crash." + std::to_string(rank)).value_or("");
} catch (const std::system_error&) {
  return "";
}

}  // namespace ddprun::launch
