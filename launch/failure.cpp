#include "launch/failure.hpp"

#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/log.hpp"
#include "launch/job_folder.hpp"
#include "launch/net/bytes.hpp"
#include "launch/rendezvous.hpp"

namespace ddprun::launch {
namespace {

constexpr const char* kFirst = "failure.first";

std::optional<Failure> read(const std::string& path) {
  const auto record = read_whole(path);
  if (!record) return std::nullopt;
  Failure failure;
  ByteReader(*record).fields(fields(failure));
  return failure;
}

// torchrun shows the errors in these files. Format: torch.distributed.elastic's ErrorHandler; without py_callstack,
// which torchrun would show instead of the message. torchrun takes the rank with the smallest time, in whole seconds,
// for the cause. So a rank that fails because of another rank writes a later time.
void write_torchrun_error(ExitCode code, const std::string& message) {
  const char* path = std::getenv("TORCHELASTIC_ERROR_FILE");
  if (path == nullptr || *path == '\0') return;
  const std::time_t time = std::time(nullptr) + (code == ExitCode::peer ? 1 : 0);
  const nlohmann::json error = {
      {"message", {{"message", message}, {"extraInfo", {{"timestamp", std::to_string(time)}}}}}};
  try {
    replace_file(path, error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } catch (const Error& failed) {
    log::warning(failed.what());  // the message itself goes to stderr
  }
}

}  // namespace

std::optional<Failure> failure_of(const std::string& job_dir, int rank) {
  return read(job_dir + "/failure." + std::to_string(rank));
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
  (void)publish(job_dir, "failure." + std::to_string(rank), record);
  (void)publish(job_dir, kFirst, record);
} catch (const std::exception&) {
  // Out of memory while reporting a failure: the exit code must do.
}

ExitCode report_failure(ExitCode code, const std::string& message) {
  write_torchrun_error(code, message);
  const char* job_dir = std::getenv("DDPRUN_JOB_DIR");
  const char* rank = std::getenv("DDPRUN_RANK");
  // A rank in the place of a dead one must not end a job that goes on without it.
  if (job_dir != nullptr && rank != nullptr && std::getenv(kReplaces) == nullptr) {
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
  const std::string path = job_dir + "/crash." + std::to_string(rank);
  const std::string where = read_whole(path).value_or("");
  ::unlink(path.c_str());
  return where;
} catch (const Error&) {
  return "";
}

}  // namespace ddprun::launch
