/* ddprun/plugin/host.h: which processes share a host, and whether another one still runs. C functions for plugins in
 * any language, in libddprun_sdk.a; they need no C++ library. Any thread. In C++, host.hpp is shorter to use. */
#ifndef DDPRUN_HOST_H
#define DDPRUN_HOST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDPRUN_IDENTITY_SIZE 101 /* bytes, with the final 0 */

/* Writes a text that names the running kernel since its boot, and the IPC and PID namespaces. Two processes with the
 * same text can share memory. Empty if /proc does not report it: such a process shares a host with no other, also not
 * with one whose text is empty. */
void ddprun_host_identity(char text[DDPRUN_IDENTITY_SIZE]);
/* The same for the network namespace: such processes reach each other at 127.0.0.1. */
void ddprun_network_identity(char text[DDPRUN_IDENTITY_SIZE]);

/* When a process started, in clock ticks since boot: distinguishes it from a later process with the same number. 0 if
 * there is no such process, or /proc cannot be read. */
uint64_t ddprun_start_time(int32_t pid);
/* A descriptor that poll() reports as readable when the process has ended; the caller closes it. `started`: its
 * ddprun_start_time(), or 0 where that is not known. Otherwise a negative errno: -ESRCH if it has ended before, -ENOSYS
 * before Linux 5.3. */
int ddprun_watch_process(int32_t pid, uint64_t started);

#ifdef __cplusplus
}
#endif
#endif
