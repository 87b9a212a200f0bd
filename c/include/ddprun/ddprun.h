/* ddprun/ddprun.h: the collectives of ddprun's communication plugins, for C and for languages that call C. The library
 * is libddprun_c.so. It needs no LibTorch. The Python package `ddprun` is built on it (docs/pytorch.md).
 *
 *   ddprun_group_options options = {sizeof options};
 *   options.rank = rank; options.size = size; options.device = -1; options.timeout_ms = 30000;
 *   options.backend = "shm"; options.allgather = my_allgather;
 *   ddprun_group* group;
 *   if (ddprun_group_create(&options, &group) != DDPRUN_OK) puts(ddprun_error());
 *   ddprun_collective call = {sizeof call, DDPRUN_FLOAT32, DDPRUN_SUM};
 *   call.send = call.recv = numbers; call.count = 1000;
 *   ddprun_work* work;
 *   if (ddprun_start(group, DDPRUN_ALLREDUCE, &call, 1, &work) != DDPRUN_OK) puts(ddprun_error());
 *   ...                                      // compute, while the ranks communicate
 *   while (!ddprun_wait(work, 100)) {}       // or look for Ctrl-C here
 *   if (ddprun_result(work, NULL) != DDPRUN_OK) puts(ddprun_error());
 *   ddprun_release(work);
 *
 * Any thread may call any function, unless a comment says otherwise. All ranks of a group start the same collectives in
 * the same order, so one thread of a rank should start them. No function throws, and none ends the process.
 * A failure is a ddprun_status; ddprun_error() then has one line: the backend, the rank, the cause and what to do.
 */
#ifndef DDPRUN_H
#define DDPRUN_H

#include "ddprun/plugin/comm_plugin.h"

#define DDPRUN_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ddprun_group ddprun_group; /* the ranks that communicate, through one communicator of a plugin */
typedef struct ddprun_work ddprun_work;   /* collectives that have been started together */

/* The version of the library: "0.1.0". */
DDPRUN_API const char* ddprun_version(void);

/* Why the last function that failed in the calling thread has failed. Never null. It stays until the next call of a
 * function of this header in this thread. */
DDPRUN_API const char* ddprun_error(void);

/* The names of the communication plugins in the search path, one per line, in search order, as one text that ends with
 * a 0. They are not loaded. The search path is that of `ddprun plugins`: the folders in the environment variable
 * DDPRUN_PLUGIN_PATH, the plugins of this installation, the user's own, the machine's own. It stays until the next call
 * of a function of this header in this thread. */
DDPRUN_API const char* ddprun_backends(void);

/* What a plugin declares. The strings and `capabilities` stay valid until the process ends. */
typedef struct ddprun_backend_info {
  uint32_t struct_size; /* set by the caller */
  uint32_t reserved;
  uint64_t capabilities; /* DDPRUN_CAP_... */
  const char* name;
  const char* version;
  const char* library; /* "gloo 0.5.0", or "" */
} ddprun_backend_info;

/* Loads a plugin, by name or by path (with a '/'), and describes it. DDPRUN_UNSUPPORTED: it is not found, or refused. */
DDPRUN_API ddprun_status ddprun_backend(const char* name, ddprun_backend_info* info);

/* Gathers `bytes` bytes of every rank into recv (size * bytes), in rank order. Every rank calls it with the same
 * `bytes`. Not DDPRUN_OK: a rank did not come. */
typedef ddprun_status (*ddprun_allgather_fn)(void* context, const void* send, uint64_t bytes, void* recv);

/* All of it belongs to the caller again when ddprun_group_create returns. */
typedef struct ddprun_group_options {
  uint32_t struct_size; /* sizeof(ddprun_group_options) */
  int32_t rank;
  int32_t size;
  int32_t device;        /* CUDA ordinal, or -1 for host memory */
  uint32_t timeout_ms;   /* for the ranks to join, and for one collective from its start in the plugin on */
  int32_t deterministic; /* not 0: the order in which the ranks are added does not vary from run to run */
  /* Not 0: before each collective, the ranks compare its kind, dtype, count, operation and root. If they differ, it is
   * DDPRUN_MISMATCH on every rank. On one host this takes about a microsecond, across hosts one small allgather. */
  int32_t check;
  uint32_t option_count;
  const ddprun_comm_option* options; /* of the plugin */
  const char* backend;               /* the plugin: a name, or a path */
  const char* algorithm;             /* null: "auto" */
  const char* address;               /* of this host, as in ddprun_comm_host; null: not known */
  const char* name;                  /* of the group, for messages: " of ranks 2, 3"; may be null */
  void* context;                     /* first argument of allgather */
  ddprun_allgather_fn allgather;     /* called during ddprun_group_create only, by its thread */
} ddprun_group_options;

/* Joins the ranks. Collective: all ranks call it. Blocks, at most timeout_ms apart from what allgather takes. Also fails
 * if the ranks differ in the version of ddprun, the plugin and its version, algorithm, options or check
 * (DDPRUN_MISMATCH). */
DDPRUN_API ddprun_status ddprun_group_create(const ddprun_group_options* options, ddprun_group** out);

/* Works that have not ended fail with DDPRUN_ABORTED, and then the communicator is freed. Waits for no peer. In a
 * process that a rank has forked, it does nothing. Other threads no longer use the group. Works and their results stay
 * valid until ddprun_release. */
DDPRUN_API void ddprun_group_destroy(ddprun_group* group);

/* Makes every work that has not ended, and every later one, fail with DDPRUN_ABORTED. Never blocks. */
DDPRUN_API void ddprun_group_abort(ddprun_group* group);

/* DDPRUN_OK, or what made the group unusable: the status and the text of the first collective that failed on it. Every
 * later collective has the same. Communicates with no peer. */
DDPRUN_API ddprun_status ddprun_group_failure(ddprun_group* group);

/* Writes the last 512 collectives of this rank into the file collectives-rank<rank>.json of a folder that exists
 * (docs/troubleshooting.md); `reason` is a text in it. */
DDPRUN_API ddprun_status ddprun_group_write_collectives(ddprun_group* group, const char* folder, const char* reason);

/* Memory that the plugin moves fastest (ddprun_comm_plugin::alloc), page-aligned; ordinary memory if the plugin has
 * none. Collective: all ranks call it with the same size, in order with the collectives. Free it before the group is
 * destroyed. */
DDPRUN_API ddprun_status ddprun_alloc(ddprun_group* group, uint64_t bytes, void** out);
DDPRUN_API void ddprun_free(ddprun_group* group, void* memory);

enum {
  DDPRUN_ALLREDUCE = 0,
  DDPRUN_BROADCAST = 1,
  DDPRUN_ALLGATHER = 2,
  DDPRUN_REDUCE_SCATTER = 3, /* needs DDPRUN_CAP_REDUCE_SCATTER */
  DDPRUN_BARRIER = 4
};

/* Starts `count` collectives of one kind, which are carried out one after the other, as one work. `calls`: as in
 * ddprun_collective, which says who gives what; the array belongs to the caller again when this returns, the buffers
 * when the work has ended. For DDPRUN_BARRIER, `calls` may be null and `count` 0. The collectives run in a thread of
 * the group, after those that were started before. With a stream-ordered plugin they are put on ddprun_collective.stream
 * before this returns, and the work ends then. *out is the caller's until ddprun_release. */
DDPRUN_API ddprun_status ddprun_start(ddprun_group* group, int32_t kind, const ddprun_collective* calls, uint32_t count,
                                      ddprun_work** out);

/* Starts an exchange, as ddprun_start starts a collective: each rank sends a block of bytes to each rank. Needs
 * DDPRUN_CAP_EXCHANGE. The arrays of blocks belong to the caller again when this returns. */
DDPRUN_API ddprun_status ddprun_start_exchange(ddprun_group* group, const ddprun_exchange* exchange,
                                               ddprun_work** out);

/* Waits until the work has ended, at most timeout_ms. 1: it has ended; 0: not yet, and nothing has changed. */
DDPRUN_API int32_t ddprun_wait(ddprun_work* work, uint32_t timeout_ms);

/* Calls done(context) once when the work has ended, well or not: in the group's thread, or at once in the calling thread
 * if it has ended already. At most one for a work. `done` may call ddprun_result, and must not wait for a work. */
typedef void (*ddprun_done_fn)(void* context);
DDPRUN_API void ddprun_then(ddprun_work* work, ddprun_done_fn done, void* context);

/* How a work has ended; the work must have ended. `execution` may be null; it is that of the last collective, and its
 * strings live as long as the work. After a failure, the buffers that were to be written hold anything. */
DDPRUN_API ddprun_status ddprun_result(ddprun_work* work, ddprun_comm_execution* execution);

/* The caller gives the work back; it need not have ended. */
DDPRUN_API void ddprun_release(ddprun_work* work);

/* Ends what the libraries under the plugins have started in this process (ddprun_comm_plugin::finish). At most once, at
 * the end of a rank that has not failed, after the last ddprun_group_destroy. It may wait for the other ranks. */
DDPRUN_API void ddprun_finish(void);

#ifdef __cplusplus
}
#endif
#endif
