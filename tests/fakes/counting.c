/* A correct data set in plain C: sample i is {seed + i, epoch} of class i % 3. Options: samples (10), test_samples
 * (5; 0: no test split), fail_at: fetching that sample fails, as an unreadable file would. Each build for a broken
 * table changes one thing, by the FAKE_... definitions of CMakeLists.txt. A split is of the process that opened it, as
 * one with a file or a connection would be; with FAKE_THREAD, the plugin needs a thread that starts when it is loaded.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ddprun/plugin/dataset_entry.h"

struct ddprun_dataset {
  int64_t size;
  int64_t fail_at;
  uint64_t seed;
  pid_t opened_by;
};

static pid_t has_thread; /* the process that has it: a fork has none */

static void* wait_for_ever(void* unused) {
  for (;;) pause();
  return unused;
}

__attribute__((constructor)) static void start_thread(void) {
  pthread_t thread;
  if (FAKE_THREAD && pthread_create(&thread, NULL, wait_for_ever, NULL) == 0) has_thread = getpid();
}

static const int64_t input_shape[] = {2};
static const char* const classes[] = {"none", "one", "two"};

static int64_t option(const ddprun_dataset_request* request, const char* key, int64_t fallback) {
  for (uint32_t i = 0; i < request->option_count; ++i) {
    if (strcmp(request->options[i].key, key) == 0) return strtoll(request->options[i].value, NULL, 10);
  }
  return fallback;
}

static ddprun_dataset* make(const ddprun_dataset_request* request, int64_t size) {
  ddprun_dataset* split = malloc(sizeof *split);
  split->size = size;
  split->fail_at = option(request, "fail_at", -1);
  split->seed = request->seed;
  split->opened_by = getpid();
  return split;
}

static int32_t open(const ddprun_dataset_request* request, ddprun_dataset** train, ddprun_dataset** test,
                    ddprun_dataset_error* error) {
  const int64_t test_size = option(request, "test_samples", 5);
  if (strcmp(request->root, "nowhere") == 0) {
    snprintf(error->key, sizeof error->key, "root");
    snprintf(error->reason, sizeof error->reason, "%s: no such folder; create it", request->root);
    return DDPRUN_DATASET_INVALID;
  }
  *train = make(request, option(request, "samples", 10));
  if (test_size > 0) *test = make(request, test_size);
  return DDPRUN_DATASET_OK;
}

static void describe(const ddprun_dataset* split, ddprun_dataset_info* info) {
  info->size = split->size;
  info->input.shape = input_shape;
  info->input.dimensions = 1;
  info->input.type = DDPRUN_ELEMENT_FLOAT32;
  info->target.type = DDPRUN_ELEMENT_INT64;
  info->class_count = 3;
  info->classes = classes;
}

/* Unused in no_fetch. */
__attribute__((unused)) static int32_t fetch(const ddprun_dataset* split, const int64_t* indices, uint64_t count,
                                             int64_t epoch, void* inputs, void* targets, ddprun_dataset_error* error) {
  float* input = inputs;
  int64_t* target = targets;
  if (split->opened_by != getpid() || (FAKE_THREAD && has_thread != getpid())) {
    snprintf(error->reason, sizeof error->reason, "this process is a fork of the one that loaded and opened it");
    return DDPRUN_DATASET_FAILURE;
  }
  for (uint64_t i = 0; i < count; ++i) {
    const int64_t index = indices[i];
    if (index < 0 || index >= split->size) return DDPRUN_DATASET_FAILURE;
    if (index == split->fail_at) {
      snprintf(error->key, sizeof error->key, "root");
      snprintf(error->reason, sizeof error->reason, "counting/%lld.bin: byte 0: unreadable", (long long)index);
      return DDPRUN_DATASET_INVALID;
    }
    *input++ = (float)(split->seed + (uint64_t)index);
    *input++ = (float)epoch;
    *target++ = index % 3;
  }
  return DDPRUN_DATASET_OK;
}

static void close_split(ddprun_dataset* split) {
  free(split);
}

DDPRUN_PLUGIN_EXPORT const ddprun_dataset_plugin ddprun_dataset_plugin_v1 = {
    .struct_size = FAKE_STRUCT_SIZE,
    .abi = FAKE_ABI,
    .name = FAKE_NAME,
    .version = "1.2.3",
    .summary = "counts, in plain C",
    .open = open,
    .describe = describe,
    .fetch = FAKE_FETCH,
    .close = close_split,
};
