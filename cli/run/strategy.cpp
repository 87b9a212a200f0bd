#include "cli/run/strategy.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "ddp/comm_hooks.hpp"
#include "ddp/group_state.hpp"
#include "ddprun/error.hpp"
#include "ddprun/sync_batch_norm.hpp"

namespace ddprun::run {
namespace {

// Empty for "none".
CommHook compression(const config::Experiment::Strategy& strategy) {
  if (strategy.compression == "fp16") return fp16_compress_hook();
  if (strategy.compression == "bf16") return bf16_compress_hook();
  if (strategy.compression == "powersgd") {
    return power_sgd_hook({.matrix_approximation_rank = strategy.powersgd_rank, .start_iter = strategy.powersgd_start});
  }
  return {};
}

}  // namespace

train::RankGroup rank_group(const Assembly& assembly, const Group& group) {
  if (group.backend == nullptr) return {};
  return {*group.backend, milliseconds(assembly.experiment().comm.timeout)};
}

std::unique_ptr<train::GradientSync> make_sync(const Assembly& assembly, const Group& group,
                                               std::function<std::unique_ptr<Reducer>(train::BucketedReducer&)> wrap) {
  if (group.backend == nullptr) return nullptr;
  const auto& strategy = assembly.experiment().strategy;
  constexpr double kMiB = 1024 * 1024;
  train::GradientSyncOptions options;
  options.reducer.bucket_bytes = static_cast<std::size_t>(strategy.bucket_cap_mb * kMiB);
  options.reducer.first_bucket_bytes = std::min(options.reducer.first_bucket_bytes, options.reducer.bucket_bytes);
  options.reducer.find_unused_parameters = strategy.find_unused_parameters;
  options.reducer.timeout = milliseconds(assembly.experiment().comm.timeout);
  options.reducer.comm_thread = group.ranks->state().comm_thread;
  options.broadcast_buffers = strategy.broadcast_buffers;
  options.wrap = std::move(wrap);
  auto sync =
      std::make_unique<train::GradientSync>(train::tensors_of(assembly.model->module()), *group.backend, options);
  if (CommHook hook = compression(strategy)) ddp::register_comm_hook(*sync, *group.ranks, std::move(hook));
  return sync;
}

void synchronize_batch_norm(const Assembly& assembly, const Group& group) {
  if (!group.ranks || !assembly.experiment().model.sync_batch_norm) return;
  config::at_key(assembly.loaded.sources, "model.sync_batch_norm", [&] {
    if (convert_sync_batchnorm(assembly.model->module(), *group.ranks) == 0 && group.ranks->rank() == 0) {
      log::info("model.sync_batch_norm has no effect: the model has no BatchNorm");
    }
  });
}

std::unique_ptr<train::DeviceGraph> make_graph(const Assembly& assembly) {
  if (!assembly.experiment().train.cuda_graph) return nullptr;
  return config::at_key(assembly.loaded.sources, "train.cuda_graph", train::make_device_graph);
}

std::unique_ptr<train::Strategy> make_strategy(const Assembly& assembly, const train::RankGroup& ranks,
                                               train::GradientSync* sync) {
  const config::Experiment& experiment = assembly.experiment();
  const auto& strategy = experiment.strategy;
  if (strategy.kind == "dp") {
    std::vector<Model*> others;
    for (const train::ModelPtr& replica : assembly.replicas) others.push_back(replica.get());
    return train::dp_strategy(*assembly.model, others);
  }
  if (sync == nullptr) return train::single_strategy(*assembly.model);
  return train::ddp_strategy(*assembly.model, ranks, *sync, {strategy.hash_every, experiment.train.cuda_graph});
}

}  // namespace ddprun::run
