// Preloaded into a program, it makes the disk fail for files below a folder "checkpoints": the call that
// DDPRUN_DISK_CALL names (write, fsync or rename) fails with the number of DDPRUN_DISK_ERRNO. It works
// DDPRUN_DISK_AFTER times before that, then it fails DDPRUN_DISK_TIMES times (default: always).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
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

static int fails(const char* call) {
  static atomic_long calls = 0;
  const char* const chosen = getenv("DDPRUN_DISK_CALL");
  if (chosen == NULL || strcmp(chosen, call) != 0) return 0;
  const long now = atomic_fetch_add(&calls, 1), after = number("DDPRUN_DISK_AFTER", 0);
  if (now < after || now >= after + number("DDPRUN_DISK_TIMES", 1L << 40)) return 0;
  errno = (int)number("DDPRUN_DISK_ERRNO", EIO);
  return 1;
}

ssize_t write(int fd, const void* data, size_t bytes) {
  if (is_checkpoint(fd) && fails("write")) return -1;
  ssize_t (*next)(int, const void*, size_t) = NULL;
  *(void**)&next = dlsym(RTLD_NEXT, "write");
  return next(fd, data, bytes);
}

int fsync(int fd) {
  if (is_checkpoint(fd) && fails("fsync")) return -1;
  int (*next)(int) = NULL;
  *(void**)&next = dlsym(RTLD_NEXT, "fsync");
  return next(fd);
}

int rename(const char* from, const char* to) {
  if (strstr(to, "/checkpoints/") != NULL && fails("rename")) return -1;
  int (*next)(const char*, const char*) = NULL;
  *(void**)&next = dlsym(RTLD_NEXT, "rename");
  return next(from, to);
}
