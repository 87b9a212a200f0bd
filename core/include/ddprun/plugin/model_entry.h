/* ddprun/plugin/model_entry.h: the C ABI of a model plugin.
 *
 * A model is a C++ object of LibTorch, so its plugin must have been built with the same Torch and the same C++ ABI as the
 * program. This table is read, and compared, before any C++ crosses. A model plugin exports exactly one symbol, the
 * constant `ddprun_model_plugin_v1` of type `ddprun_model_plugin`; DDPRUN_MODEL_PLUGIN() in model_plugin.hpp defines it.
 */
#ifndef DDPRUN_MODEL_ENTRY_H
#define DDPRUN_MODEL_ENTRY_H

#include <stdint.h>

#include "ddprun/plugin/export.h"
#include "ddprun/plugin/option_spec.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDPRUN_MODEL_ABI 1
#define DDPRUN_MODEL_ENTRY "ddprun_model_plugin_v1"

typedef struct ddprun_model_plugin {
  uint32_t struct_size;
  uint32_t abi;              /* DDPRUN_MODEL_ABI */
  const char* name;          /* "simplenet": the <name> of libddprun_model_<name>.so */
  const char* version;       /* of the plugin */
  const char* torch_version; /* TORCH_VERSION that it was compiled with */
  int32_t cxx11_abi;         /* _GLIBCXX_USE_CXX11_ABI that it was compiled with */
  uint32_t reserved;
  /* const ddprun::ModelContext* in, ddprun::Model* out; never throws: on failure returns null and writes one line to
   * error. The model has no thread and no open file of its own: on one host, ranks on CPUs are forked from the launcher,
   * which has made it. */
  void* (*create)(const void* context, char* error, uint64_t error_size);
  void (*destroy)(void* model);
  /* (optional) Every option that the plugin takes; see option_spec.h. Null: not declared, and the plugin itself refuses
   * the options that it does not know. Not null with a count of 0: it takes none. */
  const ddprun_option_spec* options;
  uint32_t option_count;
  uint32_t reserved_too;
} ddprun_model_plugin;

#ifdef __cplusplus
}
#endif
#endif
