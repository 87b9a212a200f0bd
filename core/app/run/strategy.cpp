#include "app/run/strategy.hpp"

#include "ddprun/error.hpp"

namespace ddprun::run {

std::unique_ptr<train::Reducer> make_reducer(const Assembly& assembly, Group& group,
                                             std::function<void(int bucket)> on_wait) {
  if (group.backend == nullptr) return nullptr;
  const auto& strategy = assembly.experiment().strategy;
  constexpr double kMiB = 1024 * 1024;
  train::ReducerOptions options;
  options.bucket_bytes = static_cast<std::size_t>(strategy.bucket_mb * kMiB);
  options.first_bucket_bytes = static_cast<std::size_t>(strategy.first_bucket_mb * kMiB);
  options.unused = strategy.unused == "zero" ? train::Unused::zero : train::Unused::error;
  options.timeout = milliseconds(assembly.experiment().comm.timeout);
  options.on_wait = std::move(on_wait);
  return train::bucketed_reducer(*group.backend, train::trainable_parameters(assembly.model->module()), options);
}

std::unique_ptr<train::DeviceGraph> make_graph(const Assembly& assembly) {
  if (!assembly.experiment().train.cuda_graph) return nullptr;
  try {
    return train::make_device_graph();
  } catch (const Error& error) {
    throw Error(error.code(), config::error(assembly.loaded.sources, "train.cuda_graph", error.what()));
  }
}

std::unique_ptr<train::Trainer> make_trainer(train::Parts parts, const Assembly& assembly, Group& group,
                                             train::Reducer* reducer) {
  const auto& strategy = assembly.experiment().strategy;
  if (strategy.kind == "dp") {
    std::vector<Model*> others;
    for (const train::ModelPtr& replica : assembly.replicas) others.push_back(replica.get());
    return train::dp_trainer(parts, others, static_cast<int>(strategy.main_device));
  }
  if (group.backend == nullptr) return train::single_trainer(parts);
  const auto timeout = milliseconds(assembly.experiment().comm.timeout);
  return train::ddp_trainer(parts, *group.backend, *reducer, {strategy.sync_buffers, strategy.hash_every, timeout});
}

}  // namespace ddprun::run
