/* ddprun/plugin/comm_plugin.h: the C ABI of a communication backend.
 *
 * A backend is a shared library that exports exactly one symbol, the constant `ddprun_comm_plugin_v1` of type
 * `ddprun_comm_plugin`. This header needs neither C++ nor torch nor a particular compiler.
 *
 * Rules of the ABI boundary:
 *   - Every struct but ddprun_comm_option and ddprun_block opens with its own size, and grows only at its end. Nobody
 *     reads or writes a field beyond struct_size.
 *   - What one side allocates, that side frees. Strings returned by a plugin stay valid as each function says.
 *   - No exception crosses. Every failure is a ddprun_status; its text is in last_error, that of create in host->error.
 *   - A field marked (optional) may be null; all others must be set.
 *   - "At once" means within one second on a machine that is not overloaded, whatever the deadline is.
 *   - A plugin changes nothing that belongs to the process or the calling thread: rounding mode and floating-point
 *     traps, locale, working folder, umask, signal handlers and signal mask, CPU affinity, priority, resource limits,
 *     timers, standard input, environment (but for variables that begin with its name in capitals and "_": NCCL_...).
 *     It prints nothing: it calls host->log. Its texts are UTF-8 without control characters. It leaves no file behind;
 *     temporary ones are in $TMPDIR. While no call is blocked and no request is in flight, it uses no CPU. What it
 *     allocates for a communicator, destroy frees.
 *   - A process may end at any time, also while a call is blocked, and without its atexit handlers and static
 *     destructors: see finish. A signal of the host may interrupt any thread that does not block it: EINTR is no error.
 *     A plugin's own threads block all signals. It sends with MSG_NOSIGNAL: SIGPIPE may end a rank.
 *   - Ranks may be forked from a process that has loaded the plugin: it starts threads, opens files and draws random
 *     numbers in create, and not when it is loaded.
 *   - The host has checked what it passes: options are as declared, and a collective follows the rules of
 *     ddprun_collective; a reduction has a dtype, op and memory that the plugin declares. Do not check them again,
 *     except that an algorithm with DDPRUN_FROM_ALLOC refuses other memory. broadcast and allgather take every dtype.
 * docs/plugin-abi.md says what may change later, and how. tests/abi/test_layout.cpp fixes the layout.
 */
#ifndef DDPRUN_COMM_PLUGIN_H
#define DDPRUN_COMM_PLUGIN_H

#include <stdint.h>

#include "ddprun/plugin/export.h"
#include "ddprun/plugin/option_spec.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDPRUN_COMM_ABI 1
#define DDPRUN_COMM_ENTRY "ddprun_comm_plugin_v1"
/* Plugins of all kinds are in folders of this name: <prefix>/lib/ddprun/v1. */
#define DDPRUN_PLUGIN_FOLDER "v1"

/* The outcome of a call.
 * After DDPRUN_TIMEOUT and DDPRUN_PEER_LOST the communicator is unusable: every later collective and alloc fails at
 * once with one of the two, or with DDPRUN_ABORTED after an abort. So does wait, unless its collective has succeeded
 * before; it releases its request. The other functions work. A peer's end fails the calls that wait for it at once,
 * with DDPRUN_PEER_LOST and the name of a lost rank: "rank 3", the one that ended or one that gave up because of it. */
typedef int32_t ddprun_status;
enum {
  DDPRUN_OK = 0,
  DDPRUN_INVALID = 1,     /* arguments or options that can never work; nothing was sent */
  DDPRUN_UNSUPPORTED = 2, /* a dtype, op, algorithm or memory kind that the backend has not declared */
  DDPRUN_TIMEOUT = 3,     /* the deadline, or the timeout of wait, passed */
  DDPRUN_PEER_LOST = 4,   /* a peer's connection ended */
  DDPRUN_ABORTED = 5,     /* abort was called, or the host's abort flag was raised */
  DDPRUN_MISMATCH = 6,    /* the ranks called different collectives; a plugin need not notice, see ddprun_collective */
  DDPRUN_NO_MEMORY = 7,
  DDPRUN_INTERNAL = 8 /* anything else: the library underneath failed */
};

/* Element types. bfloat16 and float16 are passed as 16-bit patterns. */
enum {
  DDPRUN_FLOAT16 = 0,
  DDPRUN_BFLOAT16 = 1,
  DDPRUN_FLOAT32 = 2,
  DDPRUN_FLOAT64 = 3,
  DDPRUN_INT8 = 4,
  DDPRUN_INT16 = 5,
  DDPRUN_INT32 = 6,
  DDPRUN_INT64 = 7,
  DDPRUN_UINT8 = 8,
  DDPRUN_DTYPE_COUNT = 9
};

/* Reductions. Integers wrap modulo 2^n. AVG is the sum divided by the number of ranks, for floating types only.
 * Subnormal numbers are numbers: they are not replaced by 0. What is too large becomes infinity, as IEEE 754 rounds it.
 * Of +0 and -0, MIN and MAX may give either. NaN may give anything.
 * The ranks may be added in any order, with n - 1 roundings for n ranks and one more for a wider intermediate type: the
 * error is at most g(n) times the sum of the absolute values, with g(k) = k u / (1 - k u) and the unit roundoff u of
 * the type (Higham 2002, Accuracy and Stability of Numerical Algorithms, section 3.1); g(n + 2) for AVG, and for
 * PRODUCT g(n) times the product, where no part of it overflows or becomes subnormal. All ranks get the same bits. */
enum { DDPRUN_SUM = 0, DDPRUN_MIN = 1, DDPRUN_MAX = 2, DDPRUN_PRODUCT = 3, DDPRUN_AVG = 4, DDPRUN_OP_COUNT = 5 };

/* Where a buffer lies. DDPRUN_FROM_ALLOC is a bit of ddprun_comm_algorithm.memory only: the algorithm takes buffers
 * from the plugin's alloc, and no others. */
enum { DDPRUN_HOST = 0, DDPRUN_CUDA = 1, DDPRUN_FROM_ALLOC = 2 };

/* Capability bits of a plugin. */
enum {
  DDPRUN_CAP_HOST = 1 << 0,           /* takes host memory */
  DDPRUN_CAP_CUDA = 1 << 1,           /* takes CUDA memory */
  DDPRUN_CAP_BLOCKING = 1 << 2,       /* a collective has ended, well or not, when its call returns */
  DDPRUN_CAP_STREAM_ORDERED = 1 << 3, /* a collective is ordered on ddprun_collective.stream, as CUDA work is */
  DDPRUN_CAP_ALLOC = 1 << 4,          /* alloc and free are set and give memory that moves faster than malloc's */
  DDPRUN_CAP_REDUCE_SCATTER = 1 << 5, /* reduce_scatter is set */
  DDPRUN_CAP_EXCHANGE = 1 << 6        /* exchange is set */
};

/* Log levels for ddprun_comm_host.log. */
enum { DDPRUN_LOG_DEBUG = 0, DDPRUN_LOG_INFO = 1, DDPRUN_LOG_WARNING = 2, DDPRUN_LOG_ERROR = 3 };

/* An allreduce algorithm that the plugin offers under a name ("ring", "tree", or one of its own), with what it takes.
 * The masks have bit (1 << DDPRUN_FLOAT32) and so on. "auto" is never listed: every plugin accepts it. */
typedef struct ddprun_comm_algorithm {
  uint32_t struct_size;
  uint32_t dtypes;
  uint32_t ops;
  uint32_t memory; /* bit (1 << DDPRUN_HOST) and so on; 0: all that the plugin takes */
  const char* name;
  /* (optional) The dtypes in which it adds neighbours first, in a binary tree over the ranks, if their number is a
   * power of two: ranks 0 and 1, ranks 2 and 3, ..., then these sums, and so on. For DDPRUN_SUM: each sum has the bits
   * of adding two numbers of this dtype and rounding the result to it. A plugin with such a bit
   * must obey ddprun_collective::canonical_order, by which virtual ranks (docs/elastic.md) ask for the order. */
  uint32_t canonical_order;
  uint32_t reserved;
} ddprun_comm_algorithm;

/* One `comm.options` entry, as text. */
typedef struct ddprun_comm_option {
  const char* key;
  const char* value;
} ddprun_comm_option;

/* What the host passes to create. Lives as long as the create call, except context, the functions and abort_flag, which
 * live as long as the communicator. */
typedef struct ddprun_comm_host {
  uint32_t struct_size;
  int32_t rank;
  int32_t size;
  int32_t device;        /* CUDA ordinal, or -1 for host memory */
  uint32_t deadline_ms;  /* longest time for create, and for each collective from its call on */
  int32_t deterministic; /* not 0: the order in which allreduce and reduce_scatter add must not vary from run to run */
  const char* algorithm; /* "auto" or a name from the plugin's list */
  const ddprun_comm_option* options;
  uint32_t option_count;
  uint32_t error_size;
  char* error;               /* if create fails, it writes why: one line, at most error_size bytes with the final 0 */
  void* context;             /* first argument of the two functions below */
  const int32_t* abort_flag; /* turns from 0 to 1 once; read it atomically while waiting */
  /* Writes one line to the run's log. Any thread. */
  void (*log)(void* context, int32_t level, const char* message);
  /* Out of band and blocking, during create only, by the thread that called create: gathers `bytes` bytes of every rank
   * into recv (size * bytes), in rank order. Every rank must call it with the same `bytes`. */
  ddprun_status (*allgather)(void* context, const void* send, uint64_t bytes, void* recv);
  /* The address of this host by which the hosts of the job reach it, as a number: "10.0.0.1". Empty if it is not known.
   * If all ranks are on one host, it may be empty or a loopback address. */
  const char* address;
} ddprun_comm_host;

/* One collective. Buffers must not overlap, except exactly in place:
 *   allreduce       send: count, recv: count                    in place: send == recv
 *   broadcast       recv: count; send unused                    from `root` to all
 *   allgather       send: count, recv: count * size             in place: send == recv + rank * count
 *   reduce_scatter  send: count * size, recv: count             in place: recv == send + rank * count
 *   barrier         no buffers
 * In place, the other blocks of a reduce_scatter's send stay as they were.
 * count is in elements, may be 0, and is equal on all ranks.
 * The struct belongs to the caller again when the call returns, the buffers when wait returns, whatever its answer;
 * those of a stream-ordered backend after the collective in the order of the stream. The plugin does not use them after
 * that, in no thread and after no failure. It writes only recv, and reads only what belongs to send; buffers are
 * aligned to their element and to nothing more. Any number of requests may be in flight; each is waited for once, in
 * any order. It is the host's duty that all ranks call the same collectives in the same order with the same count,
 * dtype, op, root and canonical_order; it can compare all but the last before each call (comm.check). If they differ,
 * anything may happen. */
typedef struct ddprun_collective {
  uint32_t struct_size;
  int32_t dtype;
  int32_t op;     /* allreduce and reduce_scatter */
  int32_t root;   /* broadcast */
  int32_t memory; /* DDPRUN_HOST or DDPRUN_CUDA */
  /* Not 0: this allreduce must add in the order of ddprun_comm_algorithm::canonical_order, so under "auto" the plugin
   * chooses such an algorithm. op is DDPRUN_SUM, the number of ranks a power of two, and the algorithm, or one of those
   * from which "auto" chooses, has the bit of dtype. */
  int32_t canonical_order;
  const void* send;
  void* recv;
  uint64_t count;
  void* stream; /* cudaStream_t for stream-ordered backends, else null */
} ddprun_collective;

/* Memory that goes to a rank, or where the data of a rank goes; of any alignment, and null only if bytes is 0. */
typedef struct ddprun_block {
  void* data;
  uint64_t bytes;
} ddprun_block;

/* One exchange (MPI's Alltoallv). Both arrays have an entry for every rank, this one included: send[i] goes to rank i
 * and is only read, recv[i] comes from rank i. It is the host's duty that both ranks name the same number of bytes, and
 * that no block of recv overlaps another block. If the number is 0, neither of the two waits for the other: a rank
 * whose blocks are all empty returns at once, and a rank that is missing is noticed only by those that send it data or
 * get data from it. What is said of ddprun_collective holds here too, for the arrays as for the struct. */
typedef struct ddprun_exchange {
  uint32_t struct_size;
  int32_t memory; /* DDPRUN_HOST or DDPRUN_CUDA, of all blocks */
  const ddprun_block* send;
  const ddprun_block* recv;
  void* stream; /* as in ddprun_collective */
} ddprun_exchange;

/* What carried out a collective. The strings belong to the plugin and live as long as the communicator. */
typedef struct ddprun_comm_execution {
  uint32_t struct_size;
  uint32_t reserved;
  const char* algorithm;
  const char* transport;
} ddprun_comm_execution;

typedef struct ddprun_comm ddprun_comm;       /* the plugin's communicator */
typedef struct ddprun_request ddprun_request; /* the plugin's request */

/* Threads: one thread at a time calls into a communicator. Only abort and free may come from any thread, at any time.
 * Two communicators are independent. */
typedef ddprun_status (*ddprun_collective_fn)(ddprun_comm*, const ddprun_collective*, ddprun_request**);

typedef struct ddprun_comm_plugin {
  uint32_t struct_size;
  uint32_t abi;                            /* DDPRUN_COMM_ABI */
  const char* name;                        /* "gloo": the <name> of libddprun_comm_<name>.so */
  const char* version;                     /* of the plugin */
  const char* library;                     /* the library underneath and its version: "gloo 0.5", or "" */
  uint64_t capabilities;                   /* DDPRUN_CAP_... */
  const ddprun_comm_algorithm* algorithms; /* for allreduce, at least one */
  uint32_t algorithm_count;
  uint32_t reserved;

  /* Joins all ranks into a communicator. Blocks, at most host->deadline_ms, also if a peer has taken part in every
   * allgather and does nothing more. On failure *out stays untouched. What can fail on one rank only, such as opening a
   * device, must be reported to all ranks in an allgather, so that create fails on all (C++: Host::fail_together). */
  ddprun_status (*create)(const ddprun_comm_host* host, ddprun_comm** out);
  /* Frees it, at once. Never communicates, never blocks on a peer. */
  void (*destroy)(ddprun_comm*);

  /* Each starts a collective and, on DDPRUN_OK, gives a request that must be waited for. On failure there is no
   * request. */
  ddprun_collective_fn allreduce;
  ddprun_collective_fn broadcast;
  ddprun_collective_fn allgather;
  ddprun_collective_fn barrier;

  /* Waits at most timeout_ms, even if the deadline is later. Then it answers DDPRUN_TIMEOUT, and the communicator is
   * unusable. The request is released whatever the answer.
   * `execution` (optional) is filled on DDPRUN_OK. On stream-ordered backends DDPRUN_OK means: ordered on the stream.
   * What fails there later is the answer of async_error and of the next call. */
  ddprun_status (*wait)(ddprun_comm*, ddprun_request*, uint32_t timeout_ms, ddprun_comm_execution* execution);
  /* Ends every blocked and every later call at once with DDPRUN_ABORTED. Any thread, any number of times; never blocks.
   * The host's abort flag does the same; each is enough without the other. */
  void (*abort)(ddprun_comm*);
  /* Why the last call on this communicator failed: one line, never null or empty. Valid until the next call on it. */
  const char* (*last_error)(ddprun_comm*);

  /* (optional; set with DDPRUN_CAP_REDUCE_SCATTER) */
  ddprun_collective_fn reduce_scatter;
  /* (optional for backends that are blocking or stream-ordered) *done becomes 1 when wait would return without
   * blocking, and not before. A caller may poll until then: no other call is needed for progress. */
  ddprun_status (*test)(ddprun_comm*, ddprun_request*, int32_t* done);
  /* (optional, for stream-ordered backends) What the next collective would return: DDPRUN_OK, or why the communicator
   * has failed. Communicates with no peer and never blocks. The host polls it while collectives run on the GPU. */
  ddprun_status (*async_error)(ddprun_comm*);
  /* (optional; both set with DDPRUN_CAP_ALLOC) Memory that this backend moves fastest; page-aligned. It is host memory,
   * or CUDA memory where the backend takes no other. Collective: all ranks call alloc with the same size in the same
   * order. free is local, may come from any thread, and destroy frees what is left. */
  ddprun_status (*alloc)(ddprun_comm*, uint64_t bytes, void** out);
  void (*free)(ddprun_comm*, void* memory);
  /* (optional) Every option that the plugin takes; see option_spec.h. Null: not declared, and the plugin itself refuses
   * the options that it does not know. Not null with a count of 0: it takes none. */
  const ddprun_option_spec* options;
  uint32_t option_count;
  uint32_t reserved_too;
  /* (optional) Ends what the library underneath has started in this process, as MPI_Finalize does. Called at most once,
   * by one thread, after the last destroy, if the rank has not failed; a communicator may have. It may wait for the
   * other ranks that have not failed. */
  void (*finish)(void);
  /* (optional; set with DDPRUN_CAP_EXCHANGE) Starts it as the collectives above. */
  ddprun_status (*exchange)(ddprun_comm*, const ddprun_exchange*, ddprun_request**);
} ddprun_comm_plugin;

#ifdef __cplusplus
}
#endif
#endif
