#include "app/run/strategy.hpp"

#include "ddprun/error.hpp"

namespace ddprun::run {

train::RankGroup rank_group(const Assembly& assembly, const Group& group) {
  if (group.backend == nullptr) return {};
  return {*group.backend, milliseconds(assembly.experiment().comm.timeout)};
}

std::unique_ptr<train::BucketedReducer> make_reducer(const Assembly& assembly, const Group& group) {
  if (group.backend == nullptr) return nullptr;
  const auto& strategy = assembly.experiment().strategy;
  constexpr double kMiB = 1024 * 1024;
  train::ReducerOptions options;
  options.bucket_bytes = static_cast<std::size_t>(strategy.bucket_mb * kMiB);
  options.first_bucket_bytes = static_cast<std::size_t>(strategy.first_bucket_mb * kMiB);
  options.unused = strategy.unused == "zero" ? train::Unused::zero : train::Unused::error;
  options.timeout = milliseconds(assembly.experiment().comm.timeout);
  return std::make_unique<train::BucketedReducer>(*group.backend, train::trainable_parameters(assembly.model->module()),
                                                  options);
}

std::unique_ptr<train::DeviceGraph> make_graph(const Assembly& assembly) {
  if (!assembly.experiment().train.cuda_graph) return nullptr;
  try {
    return train::make_device_graph();
  } catch (const Error& error) {
    throw Error(error.code(), config::error(assembly.loaded.sources, "train.cuda_graph", error.what()));
  }
}

std::unique_ptr<train::Strategy> make_strategy(const Assembly& assembly, const train::RankGroup& ranks,
                                               train::BucketedReducer* reducer, Reducer* gradients) {
  const config::Experiment& experiment = assembly.experiment();
  const auto& strategy = experiment.strategy;
  if (strategy.kind == "dp") {
    std::vector<Model*> others;
    for (const train::ModelPtr& replica : assembly.replicas) others.push_back(replica.get());
    return train::dp_strategy(*assembly.model, others, static_cast<int>(strategy.main_device));
  }
  if (reducer == nullptr) return train::single_strategy(*assembly.model);
  const train::DdpOptions options{strategy.sync_buffers, strategy.hash_every, experiment.train.cuda_graph};
  return train::ddp_strategy(*assembly.model, ranks, *reducer, *gradients, options);
}

}  // namespace ddprun::run
