// A plugin that breaks the rule that nothing throws across the ABI boundary: in create with the option throw =
// "create", else in allreduce and broadcast. Its other collectives break the contract in other ways.
#include <cstring>
#include <stdexcept>

#include "ddprun/plugin/comm_plugin.h"

namespace {

int communicator;  // only its address is used

ddprun_status create(const ddprun_comm_host* host, ddprun_comm** out) {
  for (uint32_t i = 0; i < host->option_count; ++i) {
    if (std::strcmp(host->options[i].key, "throw") == 0 && std::strcmp(host->options[i].value, "create") == 0) {
      throw std::runtime_error("no create today");
    }
  }
  *out = reinterpret_cast<ddprun_comm*>(&communicator);
  return DDPRUN_OK;
}
void destroy(ddprun_comm*) {}
ddprun_status allreduce(ddprun_comm*, const ddprun_collective*, ddprun_request**) {
  throw std::runtime_error("no allreduce today");
}
ddprun_status broadcast(ddprun_comm*, const ddprun_collective*, ddprun_request**) {
  throw 42;
}
ddprun_status silent(ddprun_comm*, const ddprun_collective*, ddprun_request**) {
  return DDPRUN_OK;
}
ddprun_status unknown(ddprun_comm*, const ddprun_collective*, ddprun_request**) {
  return 99;
}
ddprun_status test(ddprun_comm*, ddprun_request*, int32_t*) {
  return DDPRUN_INTERNAL;
}
ddprun_status wait(ddprun_comm*, ddprun_request*, uint32_t, ddprun_comm_execution*) {
  return DDPRUN_INTERNAL;
}
void abort(ddprun_comm*) {}
const char* last_error(ddprun_comm*) {
  return nullptr;
}

const ddprun_comm_algorithm kAlgorithm{
    sizeof(ddprun_comm_algorithm), 1U << DDPRUN_FLOAT32, 1U << DDPRUN_SUM, 0, "none", 0, 0};

}  // namespace

extern "C" __attribute__((visibility("default"))) const ddprun_comm_plugin ddprun_comm_plugin_v1;
const ddprun_comm_plugin ddprun_comm_plugin_v1{
    .struct_size = sizeof(ddprun_comm_plugin),
    .abi = DDPRUN_COMM_ABI,
    .name = "throwing",
    .version = "1.0",
    .library = "",
    .capabilities = DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING | DDPRUN_CAP_REDUCE_SCATTER,
    .algorithms = &kAlgorithm,
    .algorithm_count = 1,
    .reserved = 0,
    .create = create,
    .destroy = destroy,
    .allreduce = allreduce,
    .broadcast = broadcast,
    .allgather = silent,
    .barrier = silent,
    .wait = wait,
    .abort = abort,
    .last_error = last_error,
    .reduce_scatter = unknown,
    .test = test,
    .async_error = nullptr,
    .alloc = nullptr,
    .free = nullptr,
    .options = nullptr,
    .option_count = 0,
    .reserved_too = 0,
    .finish = nullptr,
    .exchange = nullptr};
