/* @NAME@: collectives over TCP, in C11. Each rank has a connection to every other rank and sends its data to all of
 * them ("direct"); an allreduce adds what it has received in the order of the ranks, so all ranks get the same bits.
 * The contract is in ddprun/plugin/comm_plugin.h. Replace the transport by yours. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "ddprun/plugin/comm_plugin.h"

enum { PIECE = 1 << 16 }; /* bytes of an allreduce that are exchanged at once */

struct ddprun_comm {
  int32_t rank, size;
  uint32_t deadline_ms;
  const int32_t* abort_flag;
  atomic_int aborted;
  ddprun_status failed; /* how an earlier call ended, if not with DDPRUN_OK; nothing works after it */
  int listener;
  int* peers;    /* the socket of each rank; -1: none */
  char* scratch; /* a piece of each rank */
  char error[256];
};

/* What a rank sends to a peer and receives from it. */
typedef struct transfer {
  const char* send;
  size_t to_send;
  char* recv;
  size_t to_recv;
} transfer;

static const size_t kBytes[DDPRUN_DTYPE_COUNT] = {2, 2, 4, 8, 1, 2, 4, 8, 1};

static int64_t now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

#define FAIL(comm, status, ...) (snprintf((comm)->error, sizeof(comm)->error, __VA_ARGS__), (status))

static ddprun_status lost(ddprun_comm* comm, int peer) {
  return FAIL(comm, DDPRUN_PEER_LOST, "rank %d closed its connection", peer);
}

static int is_aborted(ddprun_comm* comm) {
  return atomic_load(&comm->aborted) || __atomic_load_n(comm->abort_flag, __ATOMIC_ACQUIRE);
}

/* Whether a collective may begin. After a failure, the error text is still that of the failure. */
static ddprun_status usable(ddprun_comm* comm) {
  return is_aborted(comm) ? FAIL(comm, DDPRUN_ABORTED, "the communicator was aborted") : comm->failed;
}

/* Waits a little for one of the descriptors. */
static ddprun_status wait_for(ddprun_comm* comm, struct pollfd* descriptors, int count, int64_t deadline,
                              const char* what, int peer) {
  const int milliseconds = 10; /* an abort is noticed after this time */
  if (poll(descriptors, (nfds_t)count, milliseconds) < 0 && errno != EINTR) {
    return FAIL(comm, DDPRUN_INTERNAL, "poll: %s", strerror(errno));
  }
  if (is_aborted(comm)) return FAIL(comm, DDPRUN_ABORTED, "aborted while %s rank %d", what, peer);
  if (now_ms() > deadline) return FAIL(comm, DDPRUN_TIMEOUT, "the deadline passed while %s rank %d", what, peer);
  return DDPRUN_OK;
}

/* Moves what the sockets take and have. */
static ddprun_status move_bytes(ddprun_comm* comm, int peer, transfer* with) {
  while (with->to_send > 0) {
    const ssize_t sent = send(comm->peers[peer], with->send, with->to_send, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (sent < 0) return lost(comm, peer);
    with->send += sent;
    with->to_send -= (size_t)sent;
  }
  while (with->to_recv > 0) {
    const ssize_t got = recv(comm->peers[peer], with->recv, with->to_recv, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (got <= 0) return lost(comm, peer);
    with->recv += got;
    with->to_recv -= (size_t)got;
  }
  return DDPRUN_OK;
}

/* Carries out the transfers with all peers at the same time; transfers has one for each rank. */
static ddprun_status exchange(ddprun_comm* comm, transfer* transfers) {
  const int64_t deadline = now_ms() + comm->deadline_ms;
  struct pollfd descriptors[comm->size];
  ddprun_status status = usable(comm);
  if (status != DDPRUN_OK) return status;
  while (status == DDPRUN_OK) {
    int count = 0, missing = -1;
    for (int peer = 0; peer < comm->size && status == DDPRUN_OK; ++peer) {
      if (peer == comm->rank) continue;
      status = move_bytes(comm, peer, &transfers[peer]);
      const int events = (transfers[peer].to_send > 0 ? POLLOUT : 0) | (transfers[peer].to_recv > 0 ? POLLIN : 0);
      if (events == 0) continue;
      descriptors[count++] = (struct pollfd){comm->peers[peer], (short)events, 0};
      missing = peer;
    }
    if (status != DDPRUN_OK) break;
    if (count == 0) return DDPRUN_OK;
    status = wait_for(comm, descriptors, count, deadline, "waiting for", missing);
  }
  comm->failed = status;
  for (int peer = 0; peer < comm->size; ++peer) shutdown(comm->peers[peer], SHUT_RDWR); /* they must not wait for us */
  return status;
}

/* a becomes the reduction of a and b. Integers wrap, so they are added as unsigned numbers. */
#define DEFINE_COMBINE(type, number)                                                   \
  static void combine_##type(void* into, const void* from, size_t count, int32_t op) { \
    type* a = into;                                                                    \
    const type* b = from;                                                              \
    for (size_t i = 0; i < count; ++i) {                                               \
      switch (op) {                                                                    \
        case DDPRUN_MIN: a[i] = b[i] < a[i] ? b[i] : a[i]; break;                      \
        case DDPRUN_MAX: a[i] = b[i] > a[i] ? b[i] : a[i]; break;                      \
        case DDPRUN_PRODUCT: a[i] = (type)((number)a[i] * (number)b[i]); break;        \
        default: a[i] = (type)((number)a[i] + (number)b[i]);                           \
      }                                                                                \
    }                                                                                  \
  }
DEFINE_COMBINE(float, float)
DEFINE_COMBINE(double, double)
DEFINE_COMBINE(int32_t, uint32_t)
DEFINE_COMBINE(int64_t, uint64_t)

static void combine(int32_t dtype, void* into, const void* from, size_t count, int32_t op) {
  switch (dtype) {
    case DDPRUN_FLOAT64: combine_double(into, from, count, op); break;
    case DDPRUN_INT32: combine_int32_t(into, from, count, op); break;
    case DDPRUN_INT64: combine_int64_t(into, from, count, op); break;
    default: combine_float(into, from, count, op); /* the host refuses the types that are not declared */
  }
}

static void divide(int32_t dtype, void* numbers, size_t count, int by) {
  for (size_t i = 0; i < count; ++i) {
    if (dtype == DDPRUN_FLOAT64) ((double*)numbers)[i] /= by;
    if (dtype == DDPRUN_FLOAT32) ((float*)numbers)[i] /= (float)by;
  }
}

/* A collective has ended when its call returns, so a request has no state. */
static ddprun_status ended(ddprun_comm* comm, ddprun_status status, ddprun_request** out) {
  if (status == DDPRUN_OK) *out = (ddprun_request*)comm;
  return status;
}

static ddprun_status allreduce(ddprun_comm* comm, const ddprun_collective* call, ddprun_request** out) {
  const size_t element = kBytes[call->dtype], all = call->count * element;
  ddprun_status status = usable(comm);
  for (size_t first = 0; first < all && status == DDPRUN_OK; first += PIECE) {
    const size_t bytes = all - first < PIECE ? all - first : PIECE;
    const char* mine = (const char*)call->send + first;
    char* result = (char*)call->recv + first;
    transfer transfers[comm->size];
    for (int peer = 0; peer < comm->size; ++peer) {
      transfers[peer] = (transfer){mine, bytes, comm->scratch + (size_t)peer * PIECE, bytes};
    }
    status = exchange(comm, transfers);
    if (status != DDPRUN_OK) break;
    memcpy(comm->scratch + (size_t)comm->rank * PIECE, mine, bytes);
    memcpy(result, comm->scratch, bytes);
    for (int peer = 1; peer < comm->size; ++peer) {
      combine(call->dtype, result, comm->scratch + (size_t)peer * PIECE, bytes / element, call->op);
    }
    if (call->op == DDPRUN_AVG) divide(call->dtype, result, bytes / element, comm->size);
  }
  return ended(comm, status, out);
}

static ddprun_status broadcast(ddprun_comm* comm, const ddprun_collective* call, ddprun_request** out) {
  const size_t bytes = call->count * kBytes[call->dtype];
  transfer transfers[comm->size];
  for (int peer = 0; peer < comm->size; ++peer) {
    transfers[peer] = (transfer){0};
    if (comm->rank == call->root) {
      transfers[peer] = (transfer){call->recv, bytes, NULL, 0};
    } else if (peer == call->root) {
      transfers[peer] = (transfer){NULL, 0, call->recv, bytes};
    }
  }
  return ended(comm, exchange(comm, transfers), out);
}

static ddprun_status allgather(ddprun_comm* comm, const ddprun_collective* call, ddprun_request** out) {
  const size_t bytes = call->count * kBytes[call->dtype];
  transfer transfers[comm->size];
  for (int peer = 0; peer < comm->size; ++peer) {
    transfers[peer] =
        (transfer){call->send, bytes, bytes == 0 ? NULL : (char*)call->recv + (size_t)peer * bytes, bytes};
  }
  char* own = transfers[comm->rank].recv;
  if (bytes > 0 && own != call->send) memcpy(own, call->send, bytes);
  return ended(comm, exchange(comm, transfers), out);
}

static ddprun_status barrier(ddprun_comm* comm, const ddprun_collective* call, ddprun_request** out) {
  (void)call;
  transfer transfers[comm->size];
  for (int peer = 0; peer < comm->size; ++peer) transfers[peer] = (transfer){"", 1, comm->scratch + peer, 1};
  return ended(comm, exchange(comm, transfers), out);
}

static ddprun_status wait_request(ddprun_comm* comm, ddprun_request* request, uint32_t timeout_ms,
                                  ddprun_comm_execution* execution) {
  (void)comm, (void)request, (void)timeout_ms;
  if (execution != NULL) {
    execution->algorithm = "direct";
    execution->transport = "tcp";
  }
  return DDPRUN_OK;
}

static void abort_comm(ddprun_comm* comm) {
  atomic_store(&comm->aborted, 1);
}

static const char* last_error(ddprun_comm* comm) {
  return comm->error;
}

static void destroy(ddprun_comm* comm) {
  if (comm->listener >= 0) close(comm->listener);
  for (int peer = 0; comm->peers != NULL && peer < comm->size; ++peer) {
    if (comm->peers[peer] >= 0) close(comm->peers[peer]);
  }
  free(comm->peers);
  free(comm->scratch);
  free(comm);
}

static ddprun_status connect_to(ddprun_comm* comm, int peer, const struct sockaddr_in* address, int64_t deadline) {
  const int made = comm->peers[peer] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return FAIL(comm, DDPRUN_INTERNAL, "cannot make a socket: %s", strerror(errno));
  int error = connect(made, (const struct sockaddr*)address, sizeof *address) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    struct pollfd descriptor = {made, POLLOUT, 0};
    while (descriptor.revents == 0) {
      const ddprun_status status = wait_for(comm, &descriptor, 1, deadline, "connecting to", peer);
      if (status != DDPRUN_OK) return status;
    }
    socklen_t length = sizeof error;
    getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &length);
  }
  const int32_t own = comm->rank;
  return error == 0 && send(made, &own, sizeof own, MSG_NOSIGNAL) == sizeof own ? DDPRUN_OK : lost(comm, peer);
}

/* Accepts a connection of a higher rank, which says its rank first. */
static ddprun_status accept_one(ddprun_comm* comm, int64_t deadline) {
  int* const made = &comm->peers[comm->rank]; /* destroy closes it if something fails below */
  while ((*made = accept4(comm->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) < 0) {
    if (errno != EAGAIN && errno != EINTR) return FAIL(comm, DDPRUN_INTERNAL, "accept: %s", strerror(errno));
    struct pollfd descriptor = {comm->listener, POLLIN, 0};
    const ddprun_status status = wait_for(comm, &descriptor, 1, deadline, "waiting for a connection above", comm->rank);
    if (status != DDPRUN_OK) return status;
  }
  int32_t peer = -1;
  while (recv(*made, &peer, sizeof peer, MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EINTR)) {
    struct pollfd descriptor = {*made, POLLIN, 0};
    const ddprun_status status = wait_for(comm, &descriptor, 1, deadline, "waiting for a connection above", comm->rank);
    if (status != DDPRUN_OK) return status;
  }
  if (peer <= comm->rank || peer >= comm->size || comm->peers[peer] >= 0) {
    return FAIL(comm, DDPRUN_INTERNAL, "something other than a rank has connected");
  }
  comm->peers[peer] = *made;
  *made = -1;
  return DDPRUN_OK;
}

/* Connects to the lower ranks and accepts the higher ones. */
static ddprun_status connect_all(ddprun_comm* comm, const ddprun_comm_host* host) {
  const int64_t deadline = now_ms() + comm->deadline_ms;
  const char* own = host->address == NULL || *host->address == '\0' ? "127.0.0.1" : host->address;
  struct sockaddr_in address = {.sin_family = AF_INET}, addresses[comm->size];
  socklen_t length = sizeof address;
  if (inet_pton(AF_INET, own, &address.sin_addr) != 1) {
    return FAIL(comm, DDPRUN_UNSUPPORTED, "this host has the address %s: expected IPv4", own);
  }
  comm->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (comm->listener < 0 || bind(comm->listener, (struct sockaddr*)&address, length) != 0 ||
      listen(comm->listener, comm->size) != 0 ||
      getsockname(comm->listener, (struct sockaddr*)&address, &length) != 0) {
    return FAIL(comm, DDPRUN_INTERNAL, "cannot listen at %s: %s", own, strerror(errno));
  }
  ddprun_status status = host->allgather(host->context, &address, sizeof address, addresses);
  if (status != DDPRUN_OK) return FAIL(comm, status, "the ranks could not exchange their addresses");
  for (int peer = 0; peer < comm->rank && status == DDPRUN_OK; ++peer) {
    status = connect_to(comm, peer, &addresses[peer], deadline);
  }
  for (int missing = comm->size - 1 - comm->rank; missing > 0 && status == DDPRUN_OK; --missing) {
    status = accept_one(comm, deadline);
  }
  if (status != DDPRUN_OK) return status;
  for (int peer = 0; peer < comm->size; ++peer) {
    const int on = 1;
    if (peer != comm->rank) setsockopt(comm->peers[peer], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  close(comm->listener);
  comm->listener = -1;
  return DDPRUN_OK;
}

static ddprun_status create(const ddprun_comm_host* host, ddprun_comm** out) {
  ddprun_comm* comm = calloc(1, sizeof *comm);
  if (comm == NULL) return DDPRUN_NO_MEMORY;
  comm->rank = host->rank;
  comm->size = host->size;
  comm->deadline_ms = host->deadline_ms;
  comm->abort_flag = host->abort_flag;
  comm->listener = -1;
  comm->peers = malloc((size_t)comm->size * sizeof *comm->peers);
  comm->scratch = malloc((size_t)comm->size * PIECE);
  for (int peer = 0; comm->peers != NULL && peer < comm->size; ++peer) comm->peers[peer] = -1;
  ddprun_status status = DDPRUN_OK;
  if (comm->peers == NULL || comm->scratch == NULL) {
    status = FAIL(comm, DDPRUN_NO_MEMORY, "no memory for %d ranks", comm->size);
  } else if (comm->size > 1) {
    status = connect_all(comm, host);
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
    .name = "direct",
}};

/* Declare your entries of comm.options here; ddprun refuses all others, and create finds them in host->options. */
static const ddprun_option_spec kOptions[1];
enum { OPTION_COUNT = 0 };

/* The one symbol that the library exports. */
DDPRUN_PLUGIN_EXPORT const ddprun_comm_plugin ddprun_comm_plugin_v1 = {
    .struct_size = sizeof(ddprun_comm_plugin),
    .abi = DDPRUN_COMM_ABI,
    .name = "@NAME@",
    .version = "0.1.0",
    .library = "",
    .capabilities = DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING,
    .algorithms = kAlgorithms,
    .algorithm_count = 1,
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
    .option_count = OPTION_COUNT,
};
