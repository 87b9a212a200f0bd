#define _GNU_SOURCE
#include "ddprun/plugin/host.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel since its boot, and this process's namespaces of these kinds; "" if /proc does not report one of them. */
static void write_identity(char* text, const char* const* kinds) {
  char boot[41] = "";
  *text = '\0';
  FILE* const file = fopen("/proc/sys/kernel/random/boot_id", "re");
  const int found = file != NULL && fscanf(file, "%40s", boot) == 1;
  if (file != NULL) fclose(file);
  if (!found) return;
  int length = snprintf(text, DDPRUN_IDENTITY_SIZE, "%s", boot);
  for (; *kinds != NULL; ++kinds) {
    char path[32];
    struct stat status;
    snprintf(path, sizeof path, "/proc/self/ns/%s", *kinds);
    if (stat(path, &status) != 0) {
      *text = '\0';
      return;
    }
    length += snprintf(text + length, DDPRUN_IDENTITY_SIZE - (size_t)length, " %ju", (uintmax_t)status.st_ino);
  }
}

void ddprun_host_identity(char text[DDPRUN_IDENTITY_SIZE]) {
  write_identity(text, (const char* const[]){"ipc", "pid", NULL});
}

void ddprun_network_identity(char text[DDPRUN_IDENTITY_SIZE]) {
  write_identity(text, (const char* const[]){"net", NULL});
}

/* 0, or an errno: ESRCH if there is no such process. */
static int read_start_time(int32_t pid, uint64_t* started) {
  char path[32], line[1024];
  snprintf(path, sizeof path, "/proc/%" PRId32 "/stat", pid);
  FILE* const file = fopen(path, "re");
  if (file == NULL) return errno == ENOENT ? ESRCH : errno;
  const size_t length = fread(line, 1, sizeof line - 1, file);
  fclose(file);
  line[length] = '\0';
  /* The second field, the program's name in brackets, may hold anything; the 22nd is the time. */
  const char* at = strrchr(line, ')');
  for (int field = 2; at != NULL && field < 22; ++field) at = strchr(at + 1, ' ');
  return at != NULL && sscanf(at, "%" SCNu64, started) == 1 ? 0 : ESRCH;
}

uint64_t ddprun_start_time(int32_t pid) {
  uint64_t started = 0;
  return read_start_time(pid, &started) == 0 ? started : 0;
}

int ddprun_watch_process(int32_t pid, uint64_t started) {
  const int descriptor = (int)syscall(SYS_pidfd_open, pid, 0);
  const int error = descriptor < 0 ? errno : 0;
  uint64_t found = 0;
  const int unread = started != 0 ? read_start_time(pid, &found) : 0;
  if (unread == 0 && found == started) return error == 0 ? descriptor : -error;
  if (descriptor >= 0) close(descriptor);
  return unread != 0 ? -unread : -ESRCH;
}
