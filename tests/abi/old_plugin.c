/* A plugin of the first version 1, with its own copy of that table: it was built before options were appended, and it
 * reads no field of the host but the first. Its ranks are threads of one process. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kOk = 0, kFloat32 = 2, kSum = 0, kHostMemory = 1 << 0, kBlocking = 1 << 2, kMostRanks = 8 };

typedef struct {
  uint32_t struct_size, dtypes, ops, memory;
  const char* name;
} Algorithm;

typedef struct {
  uint32_t struct_size;
  int32_t rank, size;
} Host; /* and more, which this plugin does not need */

typedef struct {
  uint32_t struct_size;
  int32_t dtype, op, root, memory, reserved;
  const void* send;
  void* recv;
  uint64_t count;
  void* stream;
} Call;

typedef struct {
  uint32_t struct_size, reserved;
  const char *algorithm, *transport;
} Execution;

typedef struct {
  int32_t rank, size;
} Comm;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static const float* sent[kMostRanks];
static int arrived, round_number;

static void meet(int32_t size) {
  pthread_mutex_lock(&mutex);
  const int before = round_number;
  if (++arrived == size) {
    arrived = 0;
    ++round_number;
    pthread_cond_broadcast(&changed);
  }
  while (round_number == before) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

static int32_t create(const Host* host, Comm** out) {
  *out = malloc(sizeof(Comm));
  **out = (Comm){host->rank, host->size};
  return kOk;
}

static void destroy(Comm* comm) {
  free(comm);
}

static int32_t allreduce(Comm* comm, const Call* call, void** request) {
  sent[comm->rank] = call->send;
  meet(comm->size);
  float* const sums = malloc(call->count * sizeof *sums + 1);
  for (uint64_t i = 0; i < call->count; ++i) {
    sums[i] = 0;
    for (int rank = 0; rank < comm->size; ++rank) sums[i] += sent[rank][i];
  }
  meet(comm->size); /* in place: nobody reads any more */
  memcpy(call->recv, sums, call->count * sizeof *sums);
  free(sums);
  *request = comm;
  return kOk;
}

static int32_t barrier(Comm* comm, const Call* call, void** request) {
  (void)call;
  meet(comm->size);
  *request = comm;
  return kOk;
}

static int32_t wait_for(Comm* comm, void* request, uint32_t timeout_ms, Execution* execution) {
  (void)comm, (void)request, (void)timeout_ms;
  if (execution != NULL) *execution = (Execution){sizeof *execution, 0, "old", "memory"};
  return kOk;
}

static void abort_it(Comm* comm) {
  (void)comm;
}

static const char* last_error(Comm* comm) {
  (void)comm;
  return "none";
}

static const Algorithm algorithm = {sizeof algorithm, 1 << kFloat32, 1 << kSum, 0, "old"};

typedef int32_t Collective(Comm*, const Call*, void**);

const struct {
  uint32_t struct_size, abi;
  const char *name, *version, *library;
  uint64_t capabilities;
  const Algorithm* algorithms;
  uint32_t algorithm_count, reserved;
  int32_t (*create)(const Host*, Comm**);
  void (*destroy)(Comm*);
  Collective *allreduce, *broadcast, *allgather, *barrier;
  int32_t (*wait)(Comm*, void*, uint32_t, Execution*);
  void (*abort)(Comm*);
  const char* (*last_error)(Comm*);
  Collective* reduce_scatter;
  void *test, *async_error, *alloc, *free;
} ddprun_comm_plugin_v1 __attribute__((visibility("default"))) = {
    .struct_size = sizeof ddprun_comm_plugin_v1,
    .abi = 1,
    .name = "old",
    .version = "1",
    .library = "",
    .capabilities = kHostMemory | kBlocking,
    .algorithms = &algorithm,
    .algorithm_count = 1,
    .create = create,
    .destroy = destroy,
    .allreduce = allreduce,
    .broadcast = barrier,  /* not called by the test */
    .allgather = barrier,  /* nor is this */
    .barrier = barrier,
    .wait = wait_for,
    .abort = abort_it,
    .last_error = last_error,
};
