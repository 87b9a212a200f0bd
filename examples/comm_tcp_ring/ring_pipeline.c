/* Carries out a plan: two streams of blocks, one from the previous rank and one to the next. A block goes out while it
 * still comes in, chunk by chunk, so all links of the ring are busy at once. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ring.h"

/* How far a stream is. */
typedef struct cursor {
  int step;     /* this block of the stream, from 0 */
  size_t done;  /* bytes of it that are in place */
  size_t chunk; /* received: further bytes, which are in scratch and not yet reduced */
} cursor;

typedef struct block {
  char* at;
  size_t bytes;
} block;

static block block_of(const ring_plan* plan, int number) {
  const size_t index = (size_t)((number % plan->blocks + plan->blocks) % plan->blocks);
  const size_t each = plan->count / (size_t)plan->blocks, more = plan->count % (size_t)plan->blocks;
  const size_t first = index * each + (index < more ? index : more), element = ring_bytes(plan->dtype);
  return (block){plan->count == 0 ? plan->data : plan->data + first * element, (each + (index < more)) * element};
}

/* A neighbour's connection has ended. That neighbour may only have given up because of another rank; then news of that
 * rank come soon. */
static ddprun_status broken(ddprun_comm* comm, int32_t neighbour, int64_t deadline) {
  const int64_t patience = ring_now_ms() + 300;
  while (ring_now_ms() < patience && ring_now_ms() < deadline) {
    const ddprun_status status = ring_check(comm, deadline, "news of rank", neighbour);
    if (status != DDPRUN_OK) return status;
    usleep(1000);
  }
  ring_report_lost(comm, neighbour);
  return ring_check(comm, deadline, "rank", neighbour);
}

/* Receives what is there, at most until a chunk or block is complete. *moved: there was something. */
static ddprun_status receive_some(ddprun_comm* comm, const ring_plan* plan, cursor* at, int64_t deadline, int* moved) {
  const block now = block_of(plan, comm->rank - 1 - at->step);
  const size_t missing = now.bytes - at->done, element = ring_bytes(plan->dtype);
  const int reduces = at->step < plan->reduces;
  const size_t piece = reduces && missing > comm->chunk ? comm->chunk : missing;
  if (piece > 0) {
    char* const to = reduces ? comm->scratch + at->chunk : now.at + at->done;
    const ssize_t got = recv(comm->previous, to, piece - at->chunk, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return DDPRUN_OK;
    if (got <= 0) return broken(comm, comm->previous_rank, deadline);
    *moved = 1;
    if (reduces) {
      at->chunk += (size_t)got;
      if (at->chunk < piece) return DDPRUN_OK;
      char* const into = now.at + at->done;
      ring_reduce(plan->dtype, plan->op, into, comm->scratch, piece / element);
      const int complete = at->step == plan->reduces - 1; /* every rank has added its part */
      if (complete && plan->op == DDPRUN_AVG) ring_divide(plan->dtype, into, piece / element, comm->size);
      at->done += piece;
      at->chunk = 0;
    } else {
      at->done += (size_t)got;
    }
  }
  if (at->done == now.bytes) *at = (cursor){at->step + 1, 0, 0};
  return DDPRUN_OK;
}

/* The bytes of the block that can go out now. */
static size_t ready(const ring_plan* plan, const cursor* out, const cursor* in, size_t bytes) {
  const int source = out->step - plan->own; /* this block of those that come in */
  if (source < in->step) return bytes - out->done;
  return source == in->step ? in->done - out->done : 0;
}

static ddprun_status send_some(ddprun_comm* comm, const ring_plan* plan, cursor* at, const cursor* in, int64_t deadline,
                               int* moved) {
  const block now = block_of(plan, comm->rank - at->step);
  const size_t bytes = ready(plan, at, in, now.bytes);
  if (bytes > 0) {
    const ssize_t sent = send(comm->next, now.at + at->done, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return DDPRUN_OK;
    if (sent < 0) return broken(comm, comm->next_rank, deadline);
    *moved = 1;
    at->done += (size_t)sent;
  }
  if (at->done == now.bytes) *at = (cursor){at->step + 1, 0, 0};
  return DDPRUN_OK;
}

static ddprun_status run(ddprun_comm* comm, const ring_plan* plan) {
  const int64_t deadline = ring_now_ms() + comm->deadline_ms;
  cursor in = {0, 0, 0}, out = {0, 0, 0};
  while (1) {
    const int receiving = in.step < plan->receives, sending = out.step < plan->sends;
    if (!receiving && !sending) return DDPRUN_OK;
    int moved = 0;
    const cursor in_before = in, out_before = out;
    ddprun_status status = ring_check(comm, deadline, "rank", receiving ? comm->previous_rank : comm->next_rank);
    if (status == DDPRUN_OK && receiving) status = receive_some(comm, plan, &in, deadline, &moved);
    if (status == DDPRUN_OK && sending) status = send_some(comm, plan, &out, &in, deadline, &moved);
    if (status != DDPRUN_OK) return status;
    if (moved || in.step != in_before.step || out.step != out_before.step) continue;
    const int has_bytes = sending && ready(plan, &out, &in, block_of(plan, comm->rank - out.step).bytes) > 0;
    struct pollfd descriptors[2] = {{receiving ? comm->previous : -1, POLLIN, 0},
                                    {has_bytes ? comm->next : -1, POLLOUT, 0}};
    poll(descriptors, 2, 10); /* news and an abort are noticed after this time, in milliseconds */
  }
}

ddprun_status ring_run(ddprun_comm* comm, const ring_plan* plan) {
  ++comm->started;
  ddprun_status status = ring_check(comm, INT64_MAX, "nothing", comm->rank);
  if (status == DDPRUN_OK) status = comm->failed; /* and its text is still in place */
  if (status == DDPRUN_OK && comm->size > 1) status = run(comm, plan);
  if (status == DDPRUN_OK) {
    ++comm->ended;
    return DDPRUN_OK;
  }
  comm->failed = status;
  if (comm->next >= 0) shutdown(comm->next, SHUT_WR); /* the next rank must not wait for more */
  return status;
}
