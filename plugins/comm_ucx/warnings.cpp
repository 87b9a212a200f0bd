#include "context.hpp"

#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <utility>

namespace ddprun::ucx_backend {
namespace {

thread_local std::string kept;

// UCX still prints fatal errors, after which it ends the process, and what UCX_LOG_LEVEL requests beyond warnings.
ucs_log_func_rc_t keep(const char*, unsigned, const char*, ucs_log_level_t level, const ucs_log_component_config_t*,
                       const char* format, va_list arguments) {
  if (level != UCS_LOG_LEVEL_ERROR && level != UCS_LOG_LEVEL_WARN) return UCS_LOG_FUNC_RC_CONTINUE;
  constexpr std::size_t kMost = 1000;
  char line[256];
  std::vsnprintf(line, sizeof line, format, arguments);
  if (kept.size() < kMost) kept += (kept.empty() ? "" : "; ") + std::string(line);
  return UCS_LOG_FUNC_RC_STOP;
}

// When it is loaded, UCX installs handlers for crash signals and SIGHUP. These signals belong to the program.
struct LogAndSignals {
  LogAndSignals() {
    ucs_log_push_handler(keep);
    for (const int signal : {SIGHUP, SIGILL, SIGSEGV, SIGBUS, SIGFPE}) ucs_debug_disable_signal(signal);
    kept.clear();  // warnings that UCX had no handler for some of them
  }
};
const LogAndSignals log_and_signals;

}  // namespace

std::string take_warnings() {
  return std::exchange(kept, "");
}

void check(ucs_status_t result, CommStatus status, const std::string& what) {
  if (result == UCS_OK) return;
  const std::string warnings = take_warnings();
  throw CommError(status, what + ": " + (warnings.empty() ? ucs_status_string(result) : warnings));
}

}  // namespace ddprun::ucx_backend
