/* ddprun/ddprun.h: collectives over ddprun's communication plugins, for C and for languages that call C. The library is
 * libddprun_c.so. It needs no LibTorch. The Python package `ddprun` is built on it (docs/pytorch.md).
 *
 * To build: cc program.c -I PREFIX/include -L PREFIX/lib -Wl,-rpath,PREFIX/lib -lddprun_c, or CMake's
 * find_package(ddprun) and ddprun::c. An example (the whole program is tests/c/program.c):
 *
 *   ddprun_group_options options = {sizeof options};
 *   options.rank = rank; options.size = size; options.device = -1; options.timeout_ms = 30000;
 *   options.backend = "shm"; options.allgather = my_allgather;
 *   ddprun_group* group;
 *   if (ddprun_group_create(&options, &group) != DDPRUN_OK) puts(ddprun_error());
 *   ddprun_collective call = {sizeof call, DDPRUN_FLOAT32, DDPRUN_SUM};
 *   call.send = call.recv = numbers; call.count = 1000;  // float numbers[1000], in place
 *   ddprun_work* work;
 *   if (ddprun_start(group, DDPRUN_ALLREDUCE, &call, 1, &work) != DDPRUN_OK) puts(ddprun_error());
 *   ...                                                  // compute, while the ranks communicate
 *   while (!ddprun_wait(work, 100)) {}                   // or check for Ctrl-C here
 *   if (ddprun_result(work, NULL) != DDPRUN_OK) puts(ddprun_error());
 *   ddprun_release(work);
 *   ddprun_group_destroy(group);
 *
 * Rules of all functions, unless a comment says otherwise:
 *   - Any thread may call them. They neither throw nor end the process. No pointer argument is null, except a context.
 *   - All ranks of a group start the same collectives in the same order. So one thread of a rank should start them.
 *   - A function that fails returns a ddprun_status (comm_plugin.h) and leaves *out unchanged. ddprun_error() then
 *     returns one line: the backend, the rank, the cause and what to do.
 *   - In each struct, set struct_size to the sizeof of the struct, and each field that you do not use to 0.
 */
#ifndef DDPRUN_H
#define DDPRUN_H

#include "ddprun/plugin/comm_plugin.h"

#define DDPRUN_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ddprun_group ddprun_group; /* ranks that communicate: one communicator of a plugin */
typedef struct ddprun_work ddprun_work;   /* collectives that have been started together */

/* The version of the library, such as "0.1.0". */
DDPRUN_API const char* ddprun_version(void);

/* Why the previous call in this thread failed. Call it right after a function that did not return DDPRUN_OK. Never
 * null. The library owns the text. It is valid until this thread calls another function of this header. */
DDPRUN_API const char* ddprun_error(void);

/* The names of the communication plugins in the search path, one per line, in search order; "" if there are none. It
 * does not load them. The search path is that of `ddprun plugins`: the folders in the environment variable
 * DDPRUN_PLUGIN_PATH, then the plugins of this installation, of the user and of the machine. The text is owned and
 * valid as that of ddprun_error. */
DDPRUN_API const char* ddprun_backends(void);

/* What a plugin declares. The strings and `capabilities` stay valid until the process ends. */
typedef struct ddprun_backend_info {
  uint32_t struct_size; /* sizeof(ddprun_backend_info) */
  uint32_t reserved;
  uint64_t capabilities; /* DDPRUN_CAP_... */
  const char* name;
  const char* version;
  const char* library; /* what the plugin is built on: "gloo 0.5.0", or "" */
} ddprun_backend_info;

/* Loads a plugin, by its name or its path (which contains a '/'), and fills *info. DDPRUN_UNSUPPORTED: there is no
 * such plugin, or it cannot be loaded. DDPRUN_INVALID: struct_size is too small. */
DDPRUN_API ddprun_status ddprun_backend(const char* name, ddprun_backend_info* info);

/* A blocking allgather that the caller provides, for example over MPI. It gathers the `bytes` bytes at `send` of
 * all ranks into `recv` (size * bytes), in rank order. Both buffers belong to the library. ddprun_group_create calls it
 * several times, with the same `bytes` on all ranks. If it does not return DDPRUN_OK, ddprun_group_create fails. */
typedef ddprun_status (*ddprun_allgather_fn)(void* context, const void* send, uint64_t bytes, void* recv);

/* The struct and all that it points to belong to the caller again when ddprun_group_create returns. */
typedef struct ddprun_group_options {
  uint32_t struct_size; /* sizeof(ddprun_group_options) */
  int32_t rank;
  int32_t size;
  int32_t device;        /* CUDA ordinal, or -1 for host memory */
  uint32_t timeout_ms;   /* > 0; for the ranks to join, and for each collective from its start in the plugin on */
  int32_t deterministic; /* not 0: reductions add the ranks in the same order in every run */
  /* Not 0: before each collective, the ranks compare its kind, dtype, count, operation and root. If these differ, it is
   * DDPRUN_MISMATCH on every rank. It takes about a microsecond on one host, and a small allgather across hosts. */
  int32_t check;
  uint32_t option_count;
  const ddprun_comm_option* options; /* of the plugin; option_count of them */
  const char* backend;               /* the plugin: its name or its path */
  const char* algorithm;             /* null: "auto" */
  const char* address;               /* IP address of this host, as in ddprun_comm_host; null: not known */
  const char* name;                  /* of the group, for error messages: " of ranks 2, 3"; may be null */
  void* context;                     /* first argument of allgather; may be null */
  ddprun_allgather_fn allgather;     /* called only during ddprun_group_create, in the same thread */
} ddprun_group_options;

/* Joins the ranks into a group. Collective: all ranks call it. Blocks for at most timeout_ms, plus the time in
 * allgather. The caller owns *out, and frees it with ddprun_group_destroy. DDPRUN_INVALID: a wrong value in `options`.
 * DDPRUN_UNSUPPORTED: as in ddprun_backend, or the plugin does not have the device or the algorithm. DDPRUN_MISMATCH:
 * the ranks differ in the version of ddprun, the plugin and its version, algorithm, options, check or deterministic.
 * DDPRUN_PEER_LOST: allgather failed, or a rank has ended. DDPRUN_TIMEOUT: a rank did not join in time. */
DDPRUN_API ddprun_status ddprun_group_create(const ddprun_group_options* options, ddprun_group** out);

/* Frees the group. Works that have not ended fail with DDPRUN_ABORTED. It does not wait for other ranks. No other
 * thread may use the group during this call or after it. Works stay valid until ddprun_release. In a child process
 * that a rank has forked, it does nothing. */
DDPRUN_API void ddprun_group_destroy(ddprun_group* group);

/* Makes every work that has not ended, and every later one, fail with DDPRUN_ABORTED. Never blocks. */
DDPRUN_API void ddprun_group_abort(ddprun_group* group);

/* DDPRUN_OK, or the first failure that made the group unusable: every later collective has the same status and text.
 * DDPRUN_INVALID, DDPRUN_UNSUPPORTED and DDPRUN_NO_MEMORY do not. Never blocks. */
DDPRUN_API ddprun_status ddprun_group_failure(ddprun_group* group);

/* Writes the last 512 collectives of this rank to the file collectives-rank<rank>.json in `folder`, which must exist
 * (docs/reports.md). The file contains the text `reason`. DDPRUN_INTERNAL: the file cannot be written. */
DDPRUN_API ddprun_status ddprun_group_write_collectives(ddprun_group* group, const char* folder, const char* reason);

/* Allocates `bytes` bytes of the memory that the plugin moves fastest (ddprun_comm_plugin::alloc), page-aligned;
 * ordinary host memory if the plugin has none. Collective: all ranks call it with the same size, in order with the
 * collectives. Blocks until earlier collectives have ended. Free *out with ddprun_free before ddprun_group_destroy. */
DDPRUN_API ddprun_status ddprun_alloc(ddprun_group* group, uint64_t bytes, void** out);
DDPRUN_API void ddprun_free(ddprun_group* group, void* memory);

enum {
  DDPRUN_ALLREDUCE = 0,
  DDPRUN_BROADCAST = 1,
  DDPRUN_ALLGATHER = 2,
  DDPRUN_REDUCE_SCATTER = 3, /* needs DDPRUN_CAP_REDUCE_SCATTER */
  DDPRUN_BARRIER = 4
};

/* Starts `count` collectives of one kind as one work, and does not wait for them. They run one after the other in a
 * thread of the group, after all works that were started before. ddprun_collective says for each kind which buffers a
 * rank gives, and their sizes in elements. The array `calls` belongs to the caller again when this function returns,
 * and the buffers when the work has ended. For DDPRUN_BARRIER, `calls` may be null and `count` 0. The caller owns
 * *out, and frees it with ddprun_release. DDPRUN_INVALID: a wrong kind or struct_size. ddprun_result returns the
 * errors of the collectives. With a stream-ordered plugin, the work has ended when this function returns: the
 * collectives are on ddprun_collective.stream, and the buffers belong to the caller after them, in stream order. */
DDPRUN_API ddprun_status ddprun_start(ddprun_group* group, int32_t kind, const ddprun_collective* calls, uint32_t count,
                                      ddprun_work** out);

/* Starts an exchange (all-to-all), as ddprun_start starts a collective: each rank sends a block of bytes to each rank.
 * Needs DDPRUN_CAP_EXCHANGE. The arrays of blocks belong to the caller again when this function returns, the blocks
 * when the work has ended. */
DDPRUN_API ddprun_status ddprun_start_exchange(ddprun_group* group, const ddprun_exchange* exchange, ddprun_work** out);

/* Waits until the work has ended, for at most timeout_ms. Returns 1 if it has ended, 0 if it still runs. */
DDPRUN_API int32_t ddprun_wait(ddprun_work* work, uint32_t timeout_ms);

/* Calls done(context) once when the work has ended, successfully or not: in the group's thread, or in the calling
 * thread if the work has already ended. Once per work. `done` may call ddprun_result, but must not wait. */
typedef void (*ddprun_done_fn)(void* context);
DDPRUN_API void ddprun_then(ddprun_work* work, ddprun_done_fn done, void* context);

/* How the work ended: call it only after ddprun_wait has returned 1, or in `done`. `execution` may be null. It gets
 * the algorithm and the transport of the last collective; its strings are valid until ddprun_release. After a failure,
 * the contents of the receive buffers are undefined. */
DDPRUN_API ddprun_status ddprun_result(ddprun_work* work, ddprun_comm_execution* execution);

/* Frees the work. A work that still runs uses its buffers until it ends; the function of ddprun_then says when. */
DDPRUN_API void ddprun_release(ddprun_work* work);

/* Shuts down the libraries that the plugins are built on (ddprun_comm_plugin::finish), as MPI_Finalize does. Call it
 * at most once, if the rank has not failed, after the last ddprun_group_destroy. It may wait for other ranks. */
DDPRUN_API void ddprun_finish(void);

#ifdef __cplusplus
}
#endif
#endif
