#include "process.hpp"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

using ddprun::CommError;
using ddprun::CommStatus;

namespace {

std::mutex mutex;      // two threads may make their first communicators at the same time
bool started = false;  // by this plugin

std::set<std::string> variables() {
  std::set<std::string> names;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text(*one);
    names.emplace(text.substr(0, text.find('=')));
  }
  return names;
}

// MPI_Init of Open MPI installs signal handlers that print a stack, sets variables for programs that it could start,
// and makes threads, which would take the host's signals. None of that belongs to a plugin.
class ProcessGuard {
 public:
  ProcessGuard() : before_(variables()) {
    for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, nullptr, &handlers_[at(signal)]);
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask_);
  }
  ProcessGuard(const ProcessGuard&) = delete;
  ~ProcessGuard() {
    for (const std::string& name : variables()) {
      if (!before_.contains(name)) unsetenv(name.c_str());
    }
    for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &handlers_[at(signal)], nullptr);
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }

 private:
  static std::size_t at(int signal) { return static_cast<std::size_t>(signal); }

  std::set<std::string> before_;
  std::array<struct sigaction, NSIG> handlers_{};
  sigset_t mask_{};
};

}  // namespace

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  std::string line(text.data());
  std::replace_if(
      line.begin(), line.end(), [](unsigned char letter) { return letter < ' ' || letter == 127; }, ' ');
  throw CommError(CommStatus::internal, std::string(what) + ": " + line);
}

void start_mpi() {
  const std::lock_guard lock(mutex);
  int is_started = 0, is_ended = 0, threads = MPI_THREAD_SINGLE;
  MPI_Initialized(&is_started);
  MPI_Finalized(&is_ended);
  if (is_ended != 0) throw CommError(CommStatus::unsupported, "MPI has ended in this process, and cannot start again");
  if (is_started != 0) {
    MPI_Query_thread(&threads);
  } else {
    const ProcessGuard guard;
    // Without mpirun, Open MPI would start a daemon for each process.
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &threads), "MPI_Init_thread");
    started = true;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // not: end the process
  }
  if (threads < MPI_THREAD_MULTIPLE) {
    throw CommError(CommStatus::unsupported, "this MPI is without MPI_THREAD_MULTIPLE, which this plugin needs");
  }
}

void finish_mpi() {
  const std::lock_guard lock(mutex);
  if (!started) return;
  started = false;
  MPI_Finalize();
}
