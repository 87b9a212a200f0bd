// Loaded into a program with LD_AUDIT, it makes a system call of libgloo fail in the rank DDPRUN_GLOO_RANK. The call
// DDPRUN_GLOO_CALL works DDPRUN_GLOO_AFTER times and then fails once, with the errno DDPRUN_GLOO_ERRNO; a line says so.
// LD_PRELOAD cannot do it: a plugin and its libraries are loaded with RTLD_DEEPBIND, so they find libc first. For
// 64-bit glibc from 2.35 on, which also audits libraries that are linked with -z now.
#define _GNU_SOURCE
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

// An audit library has a libc of its own. A rank is forked and gets its variables then, and that libc does not see
// them. So these two functions come from the program.
static char* (*_Atomic getenv_of_program)(const char*) = NULL;
static int* (*_Atomic errno_of_program)(void) = NULL;

static const char* variable(const char* name) {
  const char* const text = getenv_of_program == NULL ? NULL : getenv_of_program(name);
  return text == NULL ? "" : text;
}

static int fails(const char* call) {
  static atomic_long calls = 0;
  if (errno_of_program == NULL || strcmp(variable("DDPRUN_GLOO_CALL"), call) != 0) return 0;
  if (strcmp(variable("DDPRUN_GLOO_RANK"), variable("DDPRUN_RANK")) != 0) return 0;
  if (atomic_fetch_add(&calls, 1) != atol(variable("DDPRUN_GLOO_AFTER"))) return 0;
  dprintf(STDERR_FILENO, "faulty_gloo: %s fails\n", call);
  *errno_of_program() = atoi(variable("DDPRUN_GLOO_ERRNO"));
  return 1;
}

// Defines next_NAME, which is set to the function of libc, and faulty_NAME, which takes its place.
#define FAULTY(type, name, parameters, arguments)     \
  static type(*next_##name) parameters = NULL;        \
  static type faulty_##name parameters {              \
    return fails(#name) ? -1 : next_##name arguments; \
  }

FAULTY(int, socket, (int domain, int kind, int protocol), (domain, kind, protocol))
FAULTY(int, bind, (int fd, const struct sockaddr* address, socklen_t size), (fd, address, size))
FAULTY(int, listen, (int fd, int backlog), (fd, backlog))
FAULTY(int, accept, (int fd, struct sockaddr* address, socklen_t* size), (fd, address, size))
FAULTY(int, connect, (int fd, const struct sockaddr* address, socklen_t size), (fd, address, size))
FAULTY(int, getsockname, (int fd, struct sockaddr* address, socklen_t* size), (fd, address, size))
FAULTY(int, getpeername, (int fd, struct sockaddr* address, socklen_t* size), (fd, address, size))
FAULTY(int, getsockopt, (int fd, int level, int option, void* value, socklen_t* size), (fd, level, option, value, size))
FAULTY(int, setsockopt, (int fd, int level, int option, const void* value, socklen_t size),
       (fd, level, option, value, size))
FAULTY(int, epoll_ctl, (int epoll, int operation, int fd, struct epoll_event* event), (epoll, operation, fd, event))
FAULTY(int, epoll_wait, (int epoll, struct epoll_event* events, int count, int timeout),
       (epoll, events, count, timeout))
FAULTY(ssize_t, recv, (int fd, void* data, size_t bytes, int flags), (fd, data, bytes, flags))
FAULTY(ssize_t, writev, (int fd, const struct iovec* parts, int count), (fd, parts, count))

static const struct {
  const char* name;
  void** next;
  void* faulty;
} functions[] = {
#define ENTRY(name) \
  { #name, (void**)&next_##name, (void*)faulty_##name }
    ENTRY(socket),      ENTRY(bind),        ENTRY(listen),     ENTRY(accept),     ENTRY(connect),
    ENTRY(getsockname), ENTRY(getpeername), ENTRY(getsockopt), ENTRY(setsockopt), ENTRY(epoll_ctl),
    ENTRY(epoll_wait),  ENTRY(recv),        ENTRY(writev)};

unsigned int la_version(unsigned int version) {
  return version;
}

// The cookie of a library says whether it is libgloo.
unsigned int la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie) {
  (void)space;
  *cookie = strstr(map->l_name, "/libgloo.so") != NULL;
  return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned int index, uintptr_t* from, uintptr_t* to, unsigned int* flags,
                       const char* name) {
  (void)index, (void)to, (void)flags;
  if (strcmp(name, "getenv") == 0) getenv_of_program = (char* (*)(const char*))symbol->st_value;
  if (strcmp(name, "__errno_location") == 0) errno_of_program = (int* (*)(void))symbol->st_value;
  for (size_t i = 0; *from == 1 && i < sizeof functions / sizeof functions[0]; ++i) {
    if (strcmp(name, functions[i].name) != 0) continue;
    *functions[i].next = (void*)symbol->st_value;
    return (uintptr_t)functions[i].faulty;
  }
  return symbol->st_value;
}
