/* ddprun/plugin/dataset_entry.h: the C ABI of a data set plugin. It needs no torch and no C++ runtime.
 *
 * A plugin exports exactly one symbol, the constant `ddprun_dataset_plugin_v1` of type `ddprun_dataset_plugin`. In C++,
 * dataset_plugin.hpp makes it from a class. The data sets that come with ddprun go through the same table.
 *
 * Structs grow only at their end; struct_size says how much of one exists. The side that makes a struct owns it and all
 * that it points to. What one side allocates, the other side never frees. No exception crosses the boundary.
 */
#ifndef DDPRUN_DATASET_ENTRY_H
#define DDPRUN_DATASET_ENTRY_H

#include <stdint.h>

#include "ddprun/plugin/export.h"
#include "ddprun/plugin/option_spec.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDPRUN_DATASET_ABI 1
#define DDPRUN_DATASET_ENTRY "ddprun_dataset_plugin_v1"

/* What a function of the table returns. */
#define DDPRUN_DATASET_OK 0
#define DDPRUN_DATASET_INVALID 1 /* an error that the user can correct: in an option, a folder or a file */
#define DDPRUN_DATASET_FAILURE 2 /* anything else: an index that is not there, no memory */

/* Types of one element. */
#define DDPRUN_ELEMENT_FLOAT32 0
#define DDPRUN_ELEMENT_INT64 1

/* The epoch number for validation samples. A training sample is then without random changes, as the test split would
 * give it. */
#define DDPRUN_DATASET_PLAIN_EPOCH (-1)

/* One split of an open data set; the plugin's own. */
typedef struct ddprun_dataset ddprun_dataset;

/* One of `data.options`, as text. */
typedef struct ddprun_dataset_option {
  const char* key;
  const char* value;
} ddprun_dataset_option;

/* What a data set is opened with. The host's, valid during the call. */
typedef struct ddprun_dataset_request {
  uint32_t struct_size;
  uint32_t option_count;
  const char* root; /* data.root, relative to the current folder; "": not given */
  const ddprun_dataset_option* options;
  uint64_t seed; /* experiment.seed: of all that is random */
} ddprun_dataset_request;

/* Shape and type of one field of one sample, without the batch dimension. No dimensions: a scalar. */
typedef struct ddprun_dataset_field {
  const int64_t* shape; /* each extent 1 or more */
  uint32_t dimensions;
  uint32_t type; /* DDPRUN_ELEMENT_... */
} ddprun_dataset_field;

/* Size, shapes and classes of a split. The pointers belong to the plugin and are valid until the split is closed. */
typedef struct ddprun_dataset_info {
  uint32_t struct_size; /* set by the host, which has zeroed the rest */
  uint32_t reserved;
  int64_t size; /* samples, 1 or more */
  ddprun_dataset_field input;
  ddprun_dataset_field target; /* a scalar int64 is a class */
  uint64_t class_count;        /* 0: regression */
  const char* const* classes;  /* their names, UTF-8 */
  uint64_t vocabulary;         /* of tokens: an int64 input has numbers from 0 to below this; 0: no tokens */
} ddprun_dataset_info;

/* Why a function did not return OK. The host's, zeroed; texts end in '\0' and are cut where they are too long. */
typedef struct ddprun_dataset_error {
  uint32_t struct_size;
  uint32_t reserved;
  char key[128];     /* the key with the error, below "data.": "root", "options.samples" */
  char reason[1024]; /* one line: what is wrong, with file and offset, and what to do; not the place in the config */
} ddprun_dataset_error;

typedef struct ddprun_dataset_plugin {
  uint32_t struct_size;
  uint32_t abi;        /* DDPRUN_DATASET_ABI */
  const char* name;    /* "image-folder": the <name> of libddprun_dataset_<name>.so, and of data.name */
  const char* version; /* of the plugin */
  const char* summary; /* one line for `ddprun plugins`: what it reads */
  /* Opens the training split and the test split. *test stays null if the data set has none. Checks everything that can
   * be checked, so that fetch need not refuse it later. After an error both stay null. One thread. */
  int32_t (*open)(const ddprun_dataset_request* request, ddprun_dataset** train, ddprun_dataset** test,
                  ddprun_dataset_error* error);
  /* Fills *info; a size of 0 says that it cannot. Any thread. */
  void (*describe)(const ddprun_dataset* split, ddprun_dataset_info* info);
  /* Writes `count` samples one after another: each has the bytes of the input field in `inputs`, of the target field in
   * `targets`; the host's memory, aligned for the elements. `epoch`, from 0 or DDPRUN_DATASET_PLAIN_EPOCH, is for
   * what is random about a sample (a crop): a sample is a function of seed, epoch and index alone, whatever thread
   * fetches it, and however often. Called from many threads at once. */
  int32_t (*fetch)(const ddprun_dataset* split, const int64_t* indices, uint64_t count, int64_t epoch, void* inputs,
                   void* targets, ddprun_dataset_error* error);
  /* Each split is closed once, in any order. */
  void (*close)(ddprun_dataset* split);
  /* (optional) Every option that the plugin takes; see option_spec.h. Null: not declared, and the plugin itself refuses
   * the options that it does not know. Not null with a count of 0: it takes none. */
  const ddprun_option_spec* options;
  uint32_t option_count;
  uint32_t reserved;
} ddprun_dataset_plugin;

#ifdef __cplusplus
}
#endif
#endif
