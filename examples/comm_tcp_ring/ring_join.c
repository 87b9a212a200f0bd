/* How the ranks connect. Each listens on a port of its own and publishes address and port by host->allgather, which is
 * the only rendezvous. Then it connects to the next rank and accepts the connection of the previous one. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ring.h"

/* Where a rank listens. A connection begins with the secret, so a stranger's is recognised. */
typedef struct place {
  struct sockaddr_in address;
  uint64_t secret;
} place;

static ddprun_status wait_for(ddprun_comm* comm, int descriptor, short events, int64_t deadline, const char* what,
                              int32_t rank) {
  struct pollfd waiting = {descriptor, events, 0};
  while (poll(&waiting, 1, 10) <= 0) {
    const ddprun_status status = ring_check(comm, deadline, what, rank);
    if (status != DDPRUN_OK) return status;
  }
  return DDPRUN_OK;
}

static ddprun_status listen_at(ddprun_comm* comm, const char* host, place* own) {
  socklen_t length = sizeof own->address;
  own->address = (struct sockaddr_in){.sin_family = AF_INET};
  if (inet_pton(AF_INET, host, &own->address.sin_addr) != 1) {
    return ring_fail(comm, DDPRUN_UNSUPPORTED, "this host has the address %s: expected IPv4", host);
  }
  comm->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (comm->listener < 0 || bind(comm->listener, (struct sockaddr*)&own->address, length) != 0 ||
      listen(comm->listener, 8) != 0 || getsockname(comm->listener, (struct sockaddr*)&own->address, &length) != 0 ||
      getrandom(&own->secret, sizeof own->secret, 0) != sizeof own->secret) {
    return ring_fail(comm, DDPRUN_INTERNAL, "cannot listen at %s: %s", host, strerror(errno));
  }
  return DDPRUN_OK;
}

static ddprun_status connect_next(ddprun_comm* comm, const place* next, int64_t deadline) {
  const int made = comm->next = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return ring_fail(comm, DDPRUN_INTERNAL, "cannot make a socket: %s", strerror(errno));
  int error = connect(made, (const struct sockaddr*)&next->address, sizeof next->address) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    const ddprun_status status = wait_for(comm, made, POLLOUT, deadline, "a connection to rank", comm->next_rank);
    if (status != DDPRUN_OK) return status;
    socklen_t length = sizeof error;
    getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &length);
  }
  if (error == 0 && send(made, &next->secret, sizeof next->secret, MSG_NOSIGNAL) < 0) error = errno;
  if (error != 0) {
    return ring_fail(comm, DDPRUN_PEER_LOST, "cannot connect to rank %d: %s", comm->next_rank, strerror(error));
  }
  return DDPRUN_OK;
}

static ddprun_status accept_previous(ddprun_comm* comm, uint64_t secret, int64_t deadline) {
  while (1) {
    ddprun_status status =
        wait_for(comm, comm->listener, POLLIN, deadline, "the connection of rank", comm->previous_rank);
    if (status != DDPRUN_OK) return status;
    comm->previous = accept4(comm->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (comm->previous < 0) continue; /* it has closed meanwhile */
    uint64_t got = 0;
    const int all = sizeof got, one = 1;
    setsockopt(comm->previous, SOL_SOCKET, SO_RCVLOWAT, &all, sizeof all); /* poll waits for all of the secret */
    const int64_t patience = ring_now_ms() + 1000;                         /* a stranger may say nothing */
    status = wait_for(comm, comm->previous, POLLIN, patience < deadline ? patience : deadline, "the secret of rank",
                      comm->previous_rank);
    if (status == DDPRUN_ABORTED) return status;
    setsockopt(comm->previous, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one);
    if (recv(comm->previous, &got, sizeof got, MSG_DONTWAIT) == sizeof got && got == secret) return DDPRUN_OK;
    close(comm->previous); /* a stranger */
    comm->previous = -1;
  }
}

ddprun_status ring_join(ddprun_comm* comm, const ddprun_comm_host* host) {
  const int64_t deadline = ring_now_ms() + comm->deadline_ms;
  place own, *const places = malloc((size_t)comm->size * sizeof own);
  memset(&own, 0, sizeof own);
  ddprun_status status = places != NULL ? DDPRUN_OK : ring_fail(comm, DDPRUN_NO_MEMORY, "out of memory");
  if (status == DDPRUN_OK) {
    status = listen_at(comm, host->address == NULL || *host->address == '\0' ? "127.0.0.1" : host->address, &own);
  }
  if (status == DDPRUN_OK && host->allgather(host->context, &own, sizeof own, places) != DDPRUN_OK) {
    status = ring_fail(comm, DDPRUN_PEER_LOST, "the ranks could not exchange their addresses");
  }
  if (status == DDPRUN_OK) status = connect_next(comm, &places[comm->next_rank], deadline);
  if (status == DDPRUN_OK) status = accept_previous(comm, own.secret, deadline);
  free(places);
  if (status != DDPRUN_OK) return status;
  const int on = 1;
  setsockopt(comm->next, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(comm->previous, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* for the news */
  close(comm->listener);
  comm->listener = -1;
  return ring_listen(comm);
}
