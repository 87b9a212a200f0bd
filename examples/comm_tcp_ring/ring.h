/* What the files of this backend share. The contract with ddprun is in ddprun/plugin/comm_plugin.h.
 *
 * The ranks form a ring. Each has one TCP connection to the next rank, on which it sends data, and one from the
 * previous rank, on which it receives data. TCP connections work both ways, but the data use only one: news about lost
 * ranks go the other way (ring_news.c). */
#ifndef RING_H
#define RING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "ddprun/plugin/comm_plugin.h"

struct ddprun_comm {
  int32_t rank, size;
  uint32_t deadline_ms;
  const int32_t* abort_flag; /* the host's */
  atomic_int aborted;
  ddprun_status failed; /* how an earlier call ended, if not with DDPRUN_OK; nothing works after it */
  char error[256];

  int listener, previous, next; /* sockets; -1: none */
  int32_t previous_rank, next_rank;
  size_t chunk;            /* bytes that are reduced at once */
  char* scratch;           /* of a chunk */
  char* tokens;            /* a byte of each rank, for the barrier */
  uint64_t started, ended; /* collectives */

  pthread_t listening; /* the thread that receives news */
  int is_listening;
  int stop;                    /* an eventfd that ends the thread; -1: none */
  atomic_int lost;             /* a rank that was lost; -1: none */
  _Atomic uint64_t left_after; /* the next rank left after this number of collectives; UINT64_MAX: it is there */
};

/* One collective, as one rank sees it. The data are divided into blocks as equal as possible, which travel around the
 * ring: the rank sends the blocks rank, rank - 1, rank - 2, ... and receives the blocks rank - 1, rank - 2, ... */
typedef struct ring_plan {
  char* data;
  size_t count; /* elements of all blocks */
  int32_t dtype, op;
  int blocks;   /* 1 or the number of ranks */
  int sends;    /* blocks to send */
  int receives; /* blocks to receive; the first `reduces` of them are combined with those in data */
  int reduces;
  int own; /* the first blocks to send that this rank has already: 0 or 1. Later ones are those that it receives */
} ring_plan;

static inline size_t ring_bytes(int32_t dtype) {
  static const size_t bytes[DDPRUN_DTYPE_COUNT] = {2, 2, 4, 8, 1, 2, 4, 8, 1};
  return bytes[dtype];
}

int64_t ring_now_ms(void);

/* Keeps the text for last_error and returns the status. */
ddprun_status ring_fail(ddprun_comm* comm, ddprun_status status, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

/* DDPRUN_OK, or why the rank must not wait any longer: aborted, a lost rank, the deadline. */
ddprun_status ring_check(ddprun_comm* comm, int64_t deadline, const char* waiting_for, int32_t rank);

/* ring_join.c: connects the ring. On failure, the caller closes what is open. */
ddprun_status ring_join(ddprun_comm* comm, const ddprun_comm_host* host);

/* ring_pipeline.c: carries out a plan. */
ddprun_status ring_run(ddprun_comm* comm, const ring_plan* plan);

/* ring_reduce.c: into becomes the reduction of into and from. */
void ring_reduce(int32_t dtype, int32_t op, void* into, const void* from, size_t count);
void ring_divide(int32_t dtype, void* numbers, size_t count, int32_t by);

/* ring_news.c: begins to receive news, ends it, and reports a lost rank or that this rank leaves. */
ddprun_status ring_listen(ddprun_comm* comm);
void ring_unlisten(ddprun_comm* comm);
void ring_report_lost(ddprun_comm* comm, int32_t rank);
void ring_report_leaving(ddprun_comm* comm);

#endif
