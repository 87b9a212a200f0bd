#include "base/subprocess.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <string>

#include "base/file.hpp"

namespace ddprun {
namespace {

// The pipe carries the exit code of an error, or ok, and then the error's message or the result.
[[noreturn]] void answer(int pipe, const std::function<std::string()>& work) {
  // The handlers of the parent that an exit() would run may remove its files. This one runs first. (ThreadSanitizer
  // replaces _exit(), and takes one inside dlopen for an error.)
  ::on_exit([](int status, void*) { ::syscall(SYS_exit_group, status); }, nullptr);
  ExitCode code = ExitCode::ok;
  std::string text;
  try {
    text = work();
  } catch (...) {
    const Error error = current_error();
    code = error.code();
    text = error.what();
  }
  write_all(pipe, std::string(reinterpret_cast<const char*>(&code), sizeof code) + text);
  ::_exit(0);
}

}  // namespace

Error current_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {ExitCode::failure, "out of memory"};
  } catch (const std::exception& error) {
    return {ExitCode::failure, error.what()};
  } catch (...) {
    return {ExitCode::failure, "an exception of an unknown type"};
  }
}

std::string text_from_subprocess(const std::function<std::string()>& work, std::optional<std::chrono::seconds> limit) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(ExitCode::failure, std::string("no pipe: ") + std::strerror(errno));
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) throw Error(ExitCode::failure, std::string("cannot fork: ") + std::strerror(errno));
  if (child == 0) {
    if (limit) ::alarm(static_cast<unsigned>(limit->count()));
    answer(in.get(), work);
  }
  in.reset();
  std::string bytes;
  read_all(out.get(), bytes);
  const int status = wait_for_child(child);
  ExitCode code = ExitCode::ok;
  if (limit && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    throw Error(ExitCode::failure, "no answer within " + std::to_string(limit->count()) + " s");
  }
  if (bytes.size() < sizeof code) {
    throw Error(
        ExitCode::failure,
        "the child process " + (WIFSIGNALED(status) ? "crashed: " + std::string(::strsignal(WTERMSIG(status)))
                                                    : "ended with exit code " + std::to_string(WEXITSTATUS(status))));
  }
  std::memcpy(&code, bytes.data(), sizeof code);
  std::string text = bytes.substr(sizeof code);
  if (code != ExitCode::ok) throw Error(code, text);
  return text;
}

int64_t run_in_subprocess(const std::function<int64_t()>& work) {
  return std::stoll(text_from_subprocess([&] { return std::to_string(work()); }, std::nullopt));
}

int wait_for_child(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace ddprun
