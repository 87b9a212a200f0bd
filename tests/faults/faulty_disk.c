// Preloaded into a program, it makes the disk fail for files below a folder "checkpoints", in the call that
// DDPRUN_DISK_CALL names (write, fsync or rename). What happens then is DDPRUN_DISK_FAULT: the call fails with EIO or
// ENOSPC, the process gets SIGKILL inside it, or, with "short", it writes only half of the bytes. The call works
// DDPRUN_DISK_AFTER times before that, then it goes wrong DDPRUN_DISK_TIMES times (default: always).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static long number(const char* name, long without) {
  const char* const text = getenv(name);
  return text == NULL ? without : atol(text);
}

static int is_checkpoint(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = '\0';
  return strstr(path, "/checkpoints/") != NULL;
}

enum fault { NONE, FAILS, SHORT };

// What this call does. With FAILS, errno is set.
static enum fault fault_in(const char* call) {
  static atomic_long calls = 0;
  const char* const chosen = getenv("DDPRUN_DISK_CALL");
  const char* const fault = getenv("DDPRUN_DISK_FAULT");
  if (chosen == NULL || fault == NULL || strcmp(chosen, call) != 0) return NONE;
  const long now = atomic_fetch_add(&calls, 1), after = number("DDPRUN_DISK_AFTER", 0);
  if (now < after || now >= after + number("DDPRUN_DISK_TIMES", 1L << 40)) return NONE;
  if (strcmp(fault, "short") == 0) return SHORT;
  if (strcmp(fault, "SIGKILL") == 0) raise(SIGKILL);
  errno = strcmp(fault, "ENOSPC") == 0 ? ENOSPC : EIO;
  return FAILS;
}

ssize_t write(int fd, const void* data, size_t bytes) {
  const enum fault fault = is_checkpoint(fd) ? fault_in("write") : NONE;
  if (fault == FAILS) return -1;
  ssize_t (*next)(int, const void*, size_t) = NULL;
  *(void**)&next = dlsym(RTLD_NEXT, "write");
  return next(fd, data, fault == SHORT ? bytes - bytes / 2 : bytes);
}

int fsync(int fd) {
  if (is_checkpoint(fd) && fault_in("fsync") == FAILS) return -1;
  int (*next)(int) = NULL;
  *(void**)&next = dlsym(RTLD_NEXT, "fsync");
  return next(fd);
}

int rename(const char* from, const char* to) {
  if (strstr(to, "/checkpoints/") != NULL && fault_in("rename") == FAILS) return -1;
  int (*next)(const char*, const char*) = NULL;
  *(void**)&next = dlsym(RTLD_NEXT, "rename");
  return next(from, to);
}
