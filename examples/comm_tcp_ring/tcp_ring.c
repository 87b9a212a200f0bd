/* tcp_ring: collectives over a ring of TCP connections, in C11. Every collective blocks until it has ended.
 *
 * Allreduce is a reduce-scatter and then an allgather: the data are divided into as many blocks as there are ranks. In
 * the first n-1 steps every block goes around the ring and each rank adds its part; in the next n-1 steps the complete
 * blocks go around once more. Each rank sends 2(n-1)/n of the data, and no algorithm can send less: P. Patarasuk and X.
 * Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal of Parallel and Distributed
 * Computing 69(2), 2009. The order of summation depends only on the ranks, so every run gives the same bits. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ring.h"

int64_t ring_now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

ddprun_status ring_fail(ddprun_comm* comm, ddprun_status status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(comm->error, sizeof comm->error, format, arguments);
  va_end(arguments);
  return status;
}

ddprun_status ring_check(ddprun_comm* comm, int64_t deadline, const char* waiting_for, int32_t rank) {
  if (atomic_load(&comm->aborted) || __atomic_load_n(comm->abort_flag, __ATOMIC_ACQUIRE)) {
    return ring_fail(comm, DDPRUN_ABORTED, "the communicator was aborted");
  }
  if (atomic_load(&comm->left_after) < comm->started) ring_report_lost(comm, comm->next_rank); /* it left too early */
  const int lost = atomic_load(&comm->lost);
  if (lost >= 0) return ring_fail(comm, DDPRUN_PEER_LOST, "rank %d has closed its connections", lost);
  if (ring_now_ms() <= deadline) return DDPRUN_OK;
  return ring_fail(comm, DDPRUN_TIMEOUT, "the deadline passed while waiting for %s %d", waiting_for, rank);
}

/* A collective has ended when its call returns, so a request has no state. */
static ddprun_status carry_out(ddprun_comm* comm, const ring_plan* plan, ddprun_request** out) {
  const ddprun_status status = ring_run(comm, plan);
  if (status == DDPRUN_OK) *out = (ddprun_request*)comm;
  return status;
}

static ddprun_status allreduce(ddprun_comm* comm, const ddprun_collective* call, ddprun_request** out) {
  if (call->count > 0 && call->send != call->recv) {
    memcpy(call->recv, call->send, call->count * ring_bytes(call->dtype));
  }
  const ring_plan plan = {.data = call->recv,
                          .count = call->count,
                          .dtype = call->dtype,
                          .op = call->op,
                          .blocks = comm->size,
                          .sends = 2 * (comm->size - 1),
                          .receives = 2 * (comm->size - 1),
                          .reduces = comm->size - 1,
                          .own = 1};
  return carry_out(comm, &plan, out);
}

static ddprun_status broadcast(ddprun_comm* comm, const ddprun_collective* call, ddprun_request** out) {
  const int is_root = comm->rank == call->root, is_last = comm->next_rank == call->root;
  const ring_plan plan = {.data = call->recv,
                          .count = call->count,
                          .dtype = call->dtype,
                          .blocks = 1,
                          .sends = !is_last,
                          .receives = !is_root,
                          .own = is_root};
  return carry_out(comm, &plan, out);
}

/* Each rank's block is in its place already. */
static ddprun_status gather(ddprun_comm* comm, char* blocks, size_t count, int32_t dtype, ddprun_request** out) {
  const ring_plan plan = {.data = blocks,
                          .count = count * (size_t)comm->size,
                          .dtype = dtype,
                          .blocks = comm->size,
                          .sends = comm->size - 1,
                          .receives = comm->size - 1,
                          .own = 1};
  return carry_out(comm, &plan, out);
}

static ddprun_status allgather(ddprun_comm* comm, const ddprun_collective* call, ddprun_request** out) {
  const size_t bytes = call->count * ring_bytes(call->dtype);
  if (bytes > 0) {
    char* const own = (char*)call->recv + (size_t)comm->rank * bytes;
    if (own != call->send) memcpy(own, call->send, bytes);
  }
  return gather(comm, call->recv, call->count, call->dtype, out);
}

static ddprun_status barrier(ddprun_comm* comm, const ddprun_collective* call, ddprun_request** out) {
  (void)call;
  return gather(comm, comm->tokens, 1, DDPRUN_UINT8, out);
}

static ddprun_status wait_request(ddprun_comm* comm, ddprun_request* request, uint32_t timeout_ms,
                                  ddprun_comm_execution* execution) {
  (void)comm, (void)request, (void)timeout_ms;
  if (execution != NULL) {
    execution->algorithm = "ring";
    execution->transport = "tcp";
  }
  return DDPRUN_OK;
}

static void abort_comm(ddprun_comm* comm) {
  atomic_store(&comm->aborted, 1); /* a blocked call looks at it every 10 ms */
}

static const char* last_error(ddprun_comm* comm) {
  return comm->error;
}

static void destroy(ddprun_comm* comm) {
  if (comm->is_listening) ring_report_leaving(comm);
  ring_unlisten(comm);
  const int descriptors[] = {comm->listener, comm->previous, comm->next, comm->stop};
  for (size_t i = 0; i < sizeof descriptors / sizeof *descriptors; ++i) {
    if (descriptors[i] >= 0) close(descriptors[i]);
  }
  free(comm->scratch);
  free(comm->tokens);
  free(comm);
}

/* "64KiB" in bytes. ddprun has checked that it is a size, and within its range. */
static size_t size_of_text(const char* text) {
  char* unit;
  const size_t number = strtoull(text, &unit, 10);
  return *unit == 'K' ? number << 10 : *unit == 'M' ? number << 20 : number;
}

#define DEFAULT_CHUNK "64KiB"

static size_t chunk_of(const ddprun_comm_host* host) {
  for (uint32_t i = 0; i < host->option_count; ++i) {
    if (strcmp(host->options[i].key, "chunk") == 0) return size_of_text(host->options[i].value);
  }
  return size_of_text(DEFAULT_CHUNK); /* ddprun passes only what the config has */
}

static ddprun_status create(const ddprun_comm_host* host, ddprun_comm** out) {
  ddprun_comm* comm = calloc(1, sizeof *comm);
  if (comm == NULL) return DDPRUN_NO_MEMORY;
  comm->rank = host->rank;
  comm->size = host->size;
  comm->next_rank = (host->rank + 1) % host->size;
  comm->previous_rank = (host->rank + host->size - 1) % host->size;
  comm->deadline_ms = host->deadline_ms;
  comm->abort_flag = host->abort_flag;
  comm->listener = comm->previous = comm->next = comm->stop = -1;
  atomic_init(&comm->lost, -1);
  atomic_init(&comm->left_after, UINT64_MAX);
  comm->chunk = chunk_of(host) / 8 * 8; /* whole elements of every type */
  comm->scratch = malloc(comm->chunk);
  comm->tokens = calloc((size_t)comm->size, 1);
  ddprun_status status = DDPRUN_OK;
  if (comm->scratch == NULL || comm->tokens == NULL) {
    status = ring_fail(comm, DDPRUN_NO_MEMORY, "no memory for a chunk of %zu bytes", comm->chunk);
  } else if (comm->size > 1) {
    status = ring_join(comm, host);
  }
  if (status == DDPRUN_OK) {
    *out = comm;
  } else {
    snprintf(host->error, host->error_size, "%s", comm->error);
    destroy(comm);
  }
  return status;
}

static const ddprun_comm_algorithm kAlgorithms[] = {{
    .struct_size = sizeof(ddprun_comm_algorithm),
    .dtypes = 1 << DDPRUN_FLOAT32 | 1 << DDPRUN_FLOAT64 | 1 << DDPRUN_INT32 | 1 << DDPRUN_INT64,
    .ops = (1 << DDPRUN_OP_COUNT) - 1,
    .name = "ring",
}};

static const ddprun_option_spec kOptions[] = {{
    .struct_size = sizeof(ddprun_option_spec),
    .type = DDPRUN_OPTION_SIZE,
    .name = "chunk",
    .meaning = "bytes that a rank reduces at once and then passes on",
    .default_value = DEFAULT_CHUNK,
    .least = "4KiB",
    .most = "16MiB",
}};

/* The one symbol that the library exports. */
DDPRUN_PLUGIN_EXPORT const ddprun_comm_plugin ddprun_comm_plugin_v1 = {
    .struct_size = sizeof(ddprun_comm_plugin),
    .abi = DDPRUN_COMM_ABI,
    .name = "tcp_ring",
    .version = "0.1.0",
    .library = "",
    .capabilities = DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING,
    .algorithms = kAlgorithms,
    .algorithm_count = sizeof kAlgorithms / sizeof *kAlgorithms,
    .create = create,
    .destroy = destroy,
    .allreduce = allreduce,
    .broadcast = broadcast,
    .allgather = allgather,
    .barrier = barrier,
    .wait = wait_request,
    .abort = abort_comm,
    .last_error = last_error,
    .options = kOptions,
    .option_count = sizeof kOptions / sizeof *kOptions,
};
