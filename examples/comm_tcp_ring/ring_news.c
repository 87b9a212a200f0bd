/* News about ranks that are lost. A rank whose connection to the next rank breaks reports it to the previous rank,
 * against the direction of the data; that rank reports it to its previous rank, and so on. So every rank learns within
 * microseconds which rank was lost. A thread of each rank receives and passes on the news, also while the rank
 * computes.
 *
 * A rank that leaves reports how many collectives it has carried out. If it has left after the last one, nothing is
 * wrong, and its connection may close. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ring.h"

typedef struct news {
  int32_t left; /* 1: `rank` leaves after `collectives`; 0: it was lost */
  int32_t rank;
  uint64_t collectives;
} news;

static void report(ddprun_comm* comm, news item) {
  /* If the previous rank is gone as well, nobody needs the news. */
  (void)!send(comm->previous, &item, sizeof item, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void ring_report_lost(ddprun_comm* comm, int32_t rank) {
  int none = -1;
  if (!atomic_compare_exchange_strong(&comm->lost, &none, rank)) return; /* reported already */
  report(comm, (news){0, rank, 0});
}

void ring_report_leaving(ddprun_comm* comm) {
  report(comm, (news){1, comm->rank, comm->ended});
}

static void* listen_to_next(void* argument) {
  ddprun_comm* const comm = argument;
  struct pollfd descriptors[2] = {{comm->next, POLLIN, 0}, {comm->stop, POLLIN, 0}};
  news item;
  size_t has = 0; /* bytes of the item */
  while (poll(descriptors, 2, -1) >= 0 || errno == EINTR) {
    if (descriptors[1].revents != 0) break;
    if (descriptors[0].revents == 0) continue;
    const ssize_t got = recv(comm->next, (char*)&item + has, sizeof item - has, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) {
      if (atomic_load(&comm->left_after) == UINT64_MAX) ring_report_lost(comm, comm->next_rank);
      descriptors[0].fd = -1; /* no more news */
      continue;
    }
    has += (size_t)got;
    if (has < sizeof item) continue;
    has = 0;
    if (item.left) {
      atomic_store(&comm->left_after, item.collectives);
    } else {
      ring_report_lost(comm, item.rank);
    }
  }
  return NULL;
}

ddprun_status ring_listen(ddprun_comm* comm) {
  comm->stop = eventfd(0, EFD_CLOEXEC);
  if (comm->stop < 0) return ring_fail(comm, DDPRUN_INTERNAL, "eventfd: %s", strerror(errno));
  sigset_t all, before; /* the signals of the process are for the threads of the host */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&comm->listening, NULL, listen_to_next, comm);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error != 0) return ring_fail(comm, DDPRUN_INTERNAL, "cannot start a thread: %s", strerror(error));
  comm->is_listening = 1;
  return DDPRUN_OK;
}

void ring_unlisten(ddprun_comm* comm) {
  const uint64_t one = 1;
  if (!comm->is_listening) return;
  (void)!write(comm->stop, &one, sizeof one);
  pthread_join(comm->listening, NULL);
}
