/* A plugin in plain C whose table is complete and whose functions do nothing; each build of it breaks one thing, by the
 * FAKE_... definitions of CMakeLists.txt. */
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ddprun/plugin/comm_plugin.h"

__attribute__((constructor)) static void start(void) {
  FAKE_WHEN_LOADED;
}

static ddprun_status create(const ddprun_comm_host* host, ddprun_comm** out) {
  (void)host;
  (void)out;
  return DDPRUN_INTERNAL;
}
static void destroy(ddprun_comm* comm) {
  (void)comm;
}
static ddprun_status collective(ddprun_comm* comm, const ddprun_collective* call, ddprun_request** request) {
  (void)comm;
  (void)call;
  (void)request;
  return DDPRUN_INTERNAL;
}
static ddprun_status test(ddprun_comm* comm, ddprun_request* request, int32_t* done) {
  (void)comm;
  (void)request;
  (void)done;
  return DDPRUN_INTERNAL;
}
static ddprun_status wait(ddprun_comm* comm, ddprun_request* request, uint32_t timeout_ms, ddprun_comm_execution* execution) {
  (void)comm;
  (void)request;
  (void)timeout_ms;
  (void)execution;
  return DDPRUN_INTERNAL;
}
static void abort_all(ddprun_comm* comm) {
  (void)comm;
}
static const char* last_error(ddprun_comm* comm) {
  (void)comm;
  return "";
}

static const ddprun_comm_algorithm algorithms[] = {
    {sizeof(ddprun_comm_algorithm), FAKE_DTYPES, FAKE_OPS, 0, FAKE_ALGORITHM, 0, 0}};

static const ddprun_option_spec options[] = {
    {.struct_size = sizeof(ddprun_option_spec), .type = DDPRUN_OPTION_TEXT, .name = "first", .meaning = "any text"},
    {.struct_size = FAKE_OPTION_SIZE,
     .type = FAKE_OPTION_TYPE,
     .name = FAKE_OPTION,
     .meaning = FAKE_MEANING,
     .default_value = FAKE_DEFAULT,
     .least = FAKE_LEAST,
     .most = "8",
     .choices = FAKE_CHOICES},
};

DDPRUN_PLUGIN_EXPORT const ddprun_comm_plugin ddprun_comm_plugin_v1 = {
    .struct_size = FAKE_STRUCT_SIZE,
    .abi = FAKE_ABI,
    .name = FAKE_NAME,
    .version = "1.0",
    .library = "",
    .capabilities = FAKE_CAPABILITIES,
    .algorithms = algorithms,
    .algorithm_count = FAKE_ALGORITHMS,
    .create = create,
    .destroy = destroy,
    .allreduce = FAKE_ALLREDUCE,
    .broadcast = collective,
    .allgather = collective,
    .barrier = collective,
    .wait = wait,
    .abort = abort_all,
    .last_error = last_error,
    .reduce_scatter = FAKE_REDUCE_SCATTER,
    .test = FAKE_TEST,
    .options = options,
    .option_count = 2,
};
