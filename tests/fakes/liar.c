/* A data set that returns invalid data, chosen by the option lie; the host must reject it. It counts open splits, and
 * the lie "open_splits" reports the count as a failure: the host must close every split, even after an error. */
#include <stdio.h>
#include <string.h>

#include "ddprun/plugin/dataset_entry.h"

struct ddprun_dataset {
  char lie[32];
  int is_test;
};

static struct ddprun_dataset splits[2];
static int open_splits;

static const int64_t good_shape[] = {2};
static const int64_t no_extent[] = {2, 0};
static const int64_t overflowing[] = {INT64_C(1) << 62, 4};
static const char* const classes[] = {"good", NULL};
static const char* const renamed[] = {"bad"};

static int is(const ddprun_dataset* split, const char* lie) {
  return strcmp(split->lie, lie) == 0;
}

static int32_t open(const ddprun_dataset_request* request, ddprun_dataset** train, ddprun_dataset** test,
                    ddprun_dataset_error* error) {
  const char* const lie = request->option_count > 0 ? request->options[0].value : "";
  if (strcmp(lie, "open_splits") == 0) {
    snprintf(error->reason, sizeof error->reason, "%d open", open_splits);
    return DDPRUN_DATASET_FAILURE;
  }
  if (strcmp(lie, "no_train") == 0) return DDPRUN_DATASET_OK;
  for (int i = 0; i < 2; ++i) {
    snprintf(splits[i].lie, sizeof splits[i].lie, "%s", lie);
    splits[i].is_test = i;
  }
  *train = &splits[0];
  *test = is(&splits[0], "one_split") ? &splits[0] : &splits[1];
  open_splits += is(&splits[0], "one_split") ? 1 : 2;
  if (is(&splits[0], "unterminated")) {
    memset(error->key, 'k', sizeof error->key);
    memset(error->reason, 'r', sizeof error->reason);
    return DDPRUN_DATASET_INVALID;
  }
  if (is(&splits[0], "lines")) {
    snprintf(error->reason, sizeof error->reason, "one\ntwo\x1b[31m");
    return DDPRUN_DATASET_INVALID;
  }
  if (is(&splits[0], "silent")) return DDPRUN_DATASET_FAILURE;
  if (is(&splits[0], "status")) return 77;
  return DDPRUN_DATASET_OK;
}

static void describe(const ddprun_dataset* split, ddprun_dataset_info* info) {
  info->struct_size = is(split, "struct_size") ? 4096 : info->struct_size;
  info->size = is(split, "size") ? 0 : is(split, "negative_size") ? -1 : 4;
  info->input.shape = is(split, "null_shape")  ? NULL
                      : is(split, "no_extent") ? no_extent
                      : is(split, "overflow")  ? overflowing
                                               : good_shape;
  info->input.dimensions = is(split, "no_extent") || is(split, "overflow") ? 2 : is(split, "dimensions") ? 1u << 31 : 1;
  info->input.type = is(split, "type") ? 9 : is(split, "token") ? DDPRUN_ELEMENT_INT64 : DDPRUN_ELEMENT_FLOAT32;
  info->vocabulary = is(split, "token") || is(split, "float_tokens") ? 3 : is(split, "vocabulary") ? UINT64_MAX : 0;
  info->target.type = is(split, "test_differs") && split->is_test ? DDPRUN_ELEMENT_FLOAT32 : DDPRUN_ELEMENT_INT64;
  info->class_count = is(split, "class_count")  ? UINT64_MAX
                      : is(split, "no_classes") ? 0
                      : is(split, "null_class") ? 2
                                                : 1;
  info->classes = is(split, "null_classes") ? NULL : is(split, "classes_differ") && split->is_test ? renamed : classes;
}

/* Every label is 1, or 0 without a lie. */
static int32_t fetch(const ddprun_dataset* split, const int64_t* indices, uint64_t count, int64_t epoch, void* inputs,
                     void* targets, ddprun_dataset_error* error) {
  (void)indices;
  (void)epoch;
  (void)error;
  memset(inputs, 0, count * 2 * (is(split, "token") ? sizeof(int64_t) : sizeof(float)));
  if (is(split, "token")) ((int64_t*)inputs)[2 * count - 1] = 3;
  for (uint64_t i = 0; i < count; ++i) ((int64_t*)targets)[i] = is(split, "label");
  return DDPRUN_DATASET_OK;
}

static void close_split(ddprun_dataset* split) {
  (void)split;
  --open_splits;
}

extern const ddprun_dataset_plugin ddprun_dataset_plugin_v1;
DDPRUN_PLUGIN_EXPORT const ddprun_dataset_plugin ddprun_dataset_plugin_v1 = {
    .struct_size = sizeof(ddprun_dataset_plugin),
    .abi = DDPRUN_DATASET_ABI,
    .name = "liar",
    .version = "1.0",
    .summary = "says what is not so",
    .open = open,
    .describe = describe,
    .fetch = fetch,
    .close = close_split,
};
