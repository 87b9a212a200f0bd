#include "app/process.hpp"

#include <cstdlib>

#include "base/log.hpp"
#include "launch/supervisor.hpp"

namespace ddprun::app {

ExitCode tell(ExitCode code, const std::string& message) {
  const char* job_dir = std::getenv("DDPRUN_JOB_DIR");
  const char* rank = std::getenv("DDPRUN_RANK");
  if (job_dir != nullptr && rank != nullptr) {
    launch::report_failure(job_dir, std::atoi(rank), code, message);
  } else if (code == ExitCode::usage || code == ExitCode::plugin) {
    log::always(message);  // lines that begin with the place in the config
  } else if (code == ExitCode::interrupted || code == ExitCode::terminated) {
    log::always("ddprun: " + message);
  } else {
    log::always("ddprun: failed: " + message);
  }
  return code;
}

}  // namespace ddprun::app
