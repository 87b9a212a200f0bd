// A data set whose table breaks the rule that nothing throws across the ABI boundary: the option `in` names the
// function that throws.
#include <cstring>
#include <stdexcept>

#include "ddprun/plugin/dataset_entry.h"

struct ddprun_dataset {
  bool describe = false;
};

namespace {

ddprun_dataset split;
const char* const kClasses[] = {"only"};

int32_t open(const ddprun_dataset_request* request, ddprun_dataset** train, ddprun_dataset**, ddprun_dataset_error*) {
  const char* const in = request->option_count > 0 ? request->options[0].value : "";
  if (std::strcmp(in, "open") == 0) throw std::runtime_error("no open today");
  split.describe = std::strcmp(in, "describe") == 0;
  *train = &split;
  return DDPRUN_DATASET_OK;
}
void describe(const ddprun_dataset* opened, ddprun_dataset_info* info) {
  if (opened->describe) throw std::runtime_error("no describe today");
  info->size = 1;
  info->target.type = DDPRUN_ELEMENT_INT64;
  info->class_count = 1;
  info->classes = kClasses;
}
int32_t fetch(const ddprun_dataset*, const int64_t*, uint64_t, int64_t, void*, void*, ddprun_dataset_error*) {
  throw 42;
}
void close_split(ddprun_dataset*) {}

}  // namespace

extern "C" __attribute__((visibility("default"))) const ddprun_dataset_plugin ddprun_dataset_plugin_v1;
const ddprun_dataset_plugin ddprun_dataset_plugin_v1{
    sizeof(ddprun_dataset_plugin), DDPRUN_DATASET_ABI, "throwing", "1.0", "throws", open, describe, fetch, close_split};
