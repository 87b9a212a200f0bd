// Preloaded into a program, it makes the disk slow for one rank: each fsync and fdatasync takes DDPRUN_SLOW_DISK_MS
// longer for the rank that DDPRUN_SLOW_DISK_RANK names.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void delay(void) {
  const char* const rank = getenv("DDPRUN_RANK");
  const char* const slow = getenv("DDPRUN_SLOW_DISK_RANK");
  const char* const time = getenv("DDPRUN_SLOW_DISK_MS");
  if (rank == NULL || slow == NULL || time == NULL || strcmp(rank, slow) != 0) return;
  const long milliseconds = atol(time);
  struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

static int call_next(const char* name, int fd) {
  delay();
  int (*next)(int) = NULL;
  *(void**)&next = dlsym(RTLD_NEXT, name);
  return next(fd);
}

int fsync(int fd) {
  return call_next("fsync", fd);
}

int fdatasync(int fd) {
  return call_next("fdatasync", fd);
}
