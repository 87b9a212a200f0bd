#include "launch/subprocess.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "ddprun/error.hpp"
#include "launch/unique_fd.hpp"

namespace ddprun::launch {
namespace {

// The content of the pipe: this struct, followed by the message of an error.
struct Answer {
  ExitCode code = ExitCode::ok;
  int64_t value = 0;
};

void write_all(int pipe, const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = ::write(pipe, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno != EINTR) return;  // the parent has died
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
  }
}

std::string read_all(int pipe) {
  std::string bytes;
  char piece[4096];
  while (true) {
    const ssize_t got = ::read(pipe, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return bytes;
    bytes.append(piece, static_cast<std::size_t>(got));
  }
}

[[noreturn]] void answer(int pipe, const std::function<int64_t()>& work) {
  Answer answer;
  std::string words;
  try {
    answer.value = work();
  } catch (const Error& error) {
    answer.code = error.code();
    words = error.what();
  } catch (const std::exception& error) {
    answer.code = ExitCode::failure;
    words = error.what();
  }
  write_all(pipe, std::string(reinterpret_cast<const char*>(&answer), sizeof answer) + words);
  ::_exit(0);
}

}  // namespace

int64_t run_in_subprocess(const std::function<int64_t()>& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(ExitCode::failure, std::string("no pipe: ") + std::strerror(errno));
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) throw Error(ExitCode::failure, std::string("cannot fork: ") + std::strerror(errno));
  if (child == 0) answer(write_end.get(), work);
  write_end.reset();
  const std::string bytes = read_all(read_end.get());
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  Answer answer;
  if (bytes.size() < sizeof answer) throw Error(ExitCode::failure, "the process that was to answer has died");
  std::memcpy(&answer, bytes.data(), sizeof answer);
  if (answer.code != ExitCode::ok) throw Error(answer.code, bytes.substr(sizeof answer));
  return answer.value;
}

}  // namespace ddprun::launch
