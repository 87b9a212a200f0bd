#include "checkpoint/faulty_calls.hpp"

#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace ddprun::testing {
namespace {

Fault fault = Fault::none;
int fault_at = 0;
bool counting = false;
std::vector<std::string> calls;

// Records a call; returns the fault to inject into it.
Fault next(const char* name) {
  if (!counting) return Fault::none;
  calls.emplace_back(name);
  return static_cast<int>(calls.size()) - 1 == fault_at ? fault : Fault::none;
}

// Whether the call fails; sets errno if so. Does not return from a kill.
bool fails(Fault now) {
  if (now == Fault::kill) raise(SIGKILL);
  if (now == Fault::no_space) errno = ENOSPC;
  if (now == Fault::io_error) errno = EIO;
  return now == Fault::no_space || now == Fault::io_error;
}

}  // namespace

void inject(Fault kind, int at) {
  calls.clear();
  fault = kind;
  fault_at = at;
  counting = true;
}

std::vector<std::string> injected() {
  counting = false;
  return std::exchange(calls, {});
}

extern "C" {

ssize_t __real_write(int fd, const void* data, size_t bytes);
int __real_fsync(int fd);
int __real_close(int fd);
int __real_rename(const char* from, const char* to);

ssize_t __wrap_write(int fd, const void* data, size_t bytes) {
  const Fault now = next("write");
  if (now == Fault::short_write) return __real_write(fd, data, (bytes + 1) / 2);
  if (now == Fault::kill && __real_write(fd, data, bytes / 2) < 0) return -1;
  return fails(now) ? -1 : __real_write(fd, data, bytes);
}

int __wrap_fsync(int fd) {
  return fails(next("fsync")) ? -1 : __real_fsync(fd);
}

int __wrap_close(int fd) {
  const bool failed = fails(next("close"));
  const int failure = errno;
  const int closed = __real_close(fd);  // Linux closes the descriptor even if close() fails
  if (!failed) return closed;
  errno = failure;
  return -1;
}

int __wrap_rename(const char* from, const char* to) {
  return fails(next("rename")) ? -1 : __real_rename(from, to);
}

}  // extern "C"

}  // namespace ddprun::testing
