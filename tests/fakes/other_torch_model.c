/* A model plugin that reports another Torch version. It needs no Torch, because it is refused before use. */
#include <stddef.h>

#include "ddprun/plugin/model_entry.h"

static void* create(const void* context, char* error, uint64_t error_size) {
  (void)context;
  (void)error;
  (void)error_size;
  return NULL;
}
static void destroy(void* model) {
  (void)model;
}

extern const ddprun_model_plugin ddprun_model_plugin_v1;
DDPRUN_PLUGIN_EXPORT const ddprun_model_plugin ddprun_model_plugin_v1 = {
    .struct_size = sizeof(ddprun_model_plugin),
    .abi = DDPRUN_MODEL_ABI,
    .name = "other_torch",
    .version = "1.0",
    .torch_version = "1.13.1+cu117",
    .cxx11_abi = 0,
    .create = create,
    .destroy = destroy,
};
