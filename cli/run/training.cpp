#include "cli/run/training.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "cli/console/table.hpp"
#include "data/datasets.hpp"
#include "ddp/group_state.hpp"
#include "ddprun/plugin/host.hpp"
#include "ddprun/sync_batch_norm.hpp"
#include "ddprun/zero.hpp"

namespace ddprun::run {
namespace {

// Empty for "none".
CommHook compression(const config::Experiment::Strategy& strategy) {
  if (strategy.compression == "fp16") return fp16_compress_hook();
  if (strategy.compression == "bf16") return bf16_compress_hook();
  return {};
}

// Optimizer steps of the whole run.
int64_t steps_of(const config::Experiment::Train& train, int64_t steps_per_epoch) {
  return train.steps ? *train.steps : train.epochs.value_or(1) * steps_per_epoch;
}

train::Schedule schedule_of(const config::Loaded& loaded, int world, int64_t steps_per_epoch) {
  const auto& train = loaded.experiment.train;
  const int64_t steps = steps_of(train, steps_per_epoch);
  if (train.warmup > 0 && train.warmup >= steps) {
    throw Error(ExitCode::usage, config::error(loaded.sources, "train.warmup",
                                               "leaves nothing of the run, which has " +
                                                   console::several(steps, "step") + "; use fewer"));
  }
  train::Schedule schedule;
  if (train.schedule == "step") schedule.decay = train::Decay::step;
  if (train.schedule == "cosine") schedule.decay = train::Decay::cosine;
  schedule.lr = optimizer_options(loaded.experiment.optimizer, world).lr;
  schedule.warmup = train.warmup;
  schedule.steps_per_epoch = steps_per_epoch;
  schedule.total_steps = steps;
  schedule.step_epochs = train.step_epochs;
  schedule.step_factor = train.step_factor;
  schedule.min_lr = train.min_lr;
  return schedule;
}

constexpr int kMostAutoWorkers = 8;

int workers_of(const config::Experiment& experiment) {
  const int64_t workers = experiment.data.workers;
  return workers < 0 ? std::min(usable_cores(), kMostAutoWorkers) : static_cast<int>(workers);
}

Last last_of(const config::Experiment& experiment) {
  if (experiment.data.last == "drop") return Last::drop;
  return experiment.data.last == "exact" ? Last::exact : Last::pad;
}

// Of positions in the samples that are trained on. In a world of one, the distributed sampler is a sequential or a
// random one.
std::unique_ptr<Sampler> position_sampler(const Assembly& assembly, int rank, int world) {
  const config::Experiment& experiment = assembly.experiment();
  const auto& data = experiment.data;
  const bool shuffle = data.sampler == "random" || (data.sampler != "sequential" && data.shuffle);
  const auto seed = static_cast<uint64_t>(experiment.experiment.seed);
  return data::distributed_sampler(assembly.train_samples(), rank, world, seed, shuffle, last_of(experiment));
}

// sampler_of(rank): of one of training_ranks().
std::unique_ptr<train::DataLoader> loader_of(const Assembly& assembly, const launch::World& world,
                                             const Dataset& dataset, train::SamplerOf sampler_of,
                                             Last last = Last::pad) {
  const config::Experiment& experiment = assembly.experiment();
  const elastic::Range share = training_share(experiment, world.rank, world.size);
  const train::LoadedRanks ranks{share.first, training_ranks(experiment, world.size),
                                 has_virtual_ranks(experiment) ? share.count : 0};
  const data::LoaderOptions loading{workers_of(experiment), static_cast<int>(experiment.data.prefetch), {}};
  const train::Target target{assembly.device(), experiment.data.pin_memory};
  return std::make_unique<train::DataLoader>(dataset, std::move(sampler_of), rank_batch(assembly.loaded, world.size),
                                             ranks, loading, target, last);
}

// Every sample of `subset` (empty: of the data set) exactly once for any number of ranks: an average over padded
// samples would not be the model's accuracy.
std::unique_ptr<train::DataLoader> evaluation_loader(const Assembly& assembly, const launch::World& world,
                                                     const Dataset& dataset, std::span<const int64_t> subset) {
  const int64_t samples = subset.empty() ? dataset.size() : static_cast<int64_t>(subset.size());
  const int ranks = training_ranks(assembly.experiment(), world.size);
  return loader_of(assembly, world, dataset, [=](int rank) {
    return data::subset_sampler(data::distributed_sampler(samples, rank, ranks, 0, false, Last::exact), subset);
  });
}

}  // namespace

train::OptimizerOptions optimizer_options(const config::Experiment::Optimizer& chosen, int world) {
  return {.name = chosen.name,
          .lr = chosen.scale_lr == "world" ? chosen.lr * world : chosen.lr,
          .momentum = chosen.momentum,
          .nesterov = chosen.nesterov,
          .weight_decay = chosen.weight_decay,
          .betas = {chosen.betas.at(0), chosen.betas.at(1)},
          .eps = chosen.eps};
}

train::StepOptions step_options(const config::Loaded& loaded, int world, int64_t steps_per_epoch) {
  const auto& train = loaded.experiment.train;
  return {.accumulate = train.accumulate,
          .clip_norm = train.clip_norm,
          .amp = train::amp_of(train.amp),
          .channels_last = train.channels_last,
          .schedule = schedule_of(loaded, world, steps_per_epoch)};
}

std::vector<int64_t> steps_to_trace(const config::Loaded& loaded, int64_t steps_per_epoch) {
  const std::vector<int64_t>& chosen = loaded.experiment.log.trace_steps;
  const int64_t steps = steps_of(loaded.experiment.train, steps_per_epoch);
  if (!chosen.empty() && *std::max_element(chosen.begin(), chosen.end()) > steps) {
    throw Error(ExitCode::usage, config::error(loaded.sources, "log.trace_steps",
                                               "the run has only " + console::several(steps, "step")));
  }
  return chosen;
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const config::Experiment& experiment,
                                                        const std::vector<train::NamedTensor>& parameters,
                                                        const Connections& connections, int world) {
  const train::OptimizerOptions options = optimizer_options(experiment.optimizer, world);
  auto whole = train::make_optimizer(options, parameters);
  if (!connections.tensors || experiment.strategy.zero == 0) return whole;
  const auto make = [options](const ShardedOptimizer::Groups& groups) {
    std::vector<train::NamedTensor> mine;
    for (const auto& tensor : groups.at(0).params()) mine.push_back({"", tensor});
    return train::make_optimizer(options, mine);
  };
  return std::make_unique<ShardedOptimizer>(whole->param_groups(), *connections.tensors, make);
}

std::unique_ptr<train::GradientSync> make_sync(const Assembly& assembly, const Connections& connections) {
  if (!connections.tensors) return nullptr;
  const auto& strategy = assembly.experiment().strategy;
  constexpr double kMiB = 1024 * 1024;
  train::GradientSyncOptions options;
  options.reducer.bucket_bytes = static_cast<std::size_t>(strategy.bucket_cap_mb * kMiB);
  options.reducer.first_bucket_bytes = std::min(options.reducer.first_bucket_bytes, options.reducer.bucket_bytes);
  options.reducer.find_unused_parameters = strategy.find_unused_parameters;
  options.reducer.comm_thread = connections.tensors->state().comm_thread;
  options.broadcast_buffers = strategy.broadcast_buffers;
  auto sync =
      std::make_unique<train::GradientSync>(train::tensors_of(assembly.model->module()), connections.ranks, options);
  if (CommHook hook = compression(strategy); hook && strategy.virtual_ranks == 0)
    ddp::register_comm_hook(*sync, *connections.tensors, std::move(hook));
  return sync;
}

std::unique_ptr<elastic::VirtualRanks> make_virtual_ranks(const Assembly& assembly, const Connections& connections,
                                                          train::GradientSync* sync,
                                                          const elastic::Survivor* survivor) {
  const auto& strategy = assembly.experiment().strategy;
  if (!has_virtual_ranks(assembly.experiment())) return nullptr;
  const bool synchronizes = ddp::are_synchronized(train::state(assembly.model->module()), *connections.tensors);
  elastic::VirtualRanksOptions options{
      .count = static_cast<int>(strategy.virtual_ranks),
      .seed = static_cast<uint64_t>(assembly.experiment().experiment.seed),
      .find_unused_parameters = strategy.find_unused_parameters,
      .own_buffers = !strategy.broadcast_buffers,
      .gpus = assembly.devices,
      .compression = strategy.compression,
      .survives = survivor != nullptr,
      .gather_rows = synchronizes ? &connections.tensors->state().gather_rows : nullptr,
      .is_checked = survivor != nullptr && survivor->members().changes() > 0};
  if (!options.is_checked) {
    comm::with_heartbeat(connections.ranks, "loading the first samples", [&] {
      config::at_key(assembly.loaded.sources, "data.name",
                     [&] { elastic::require_same_samples(*assembly.data.train); });
    });
  }
  return config::at_key(assembly.loaded.sources, "comm.backend", [&] {
    return std::make_unique<elastic::VirtualRanks>(train::tensors_of(assembly.model->module()), *sync,
                                                   connections.ranks, options);
  });
}

void synchronize_batch_norm(const Assembly& assembly, const Connections& connections) {
  if (!connections.tensors || !assembly.experiment().model.sync_batch_norm) return;
  config::at_key(assembly.loaded.sources, "model.sync_batch_norm", [&] {
    if (convert_sync_batchnorm(assembly.model->module(), *connections.tensors) == 0 && connections.ranks.rank() == 0) {
      log::info("model.sync_batch_norm has no effect: the model has no BatchNorm");
    }
  });
}

std::unique_ptr<train::Strategy> make_strategy(const Assembly& assembly, const comm::Group& ranks,
                                               train::GradientSync* sync) {
  const config::Experiment& experiment = assembly.experiment();
  const auto& strategy = experiment.strategy;
  if (strategy.kind == "dp") {
    std::vector<Model*> others;
    for (const train::ModelPtr& replica : assembly.replicas) others.push_back(replica.get());
    return train::dp_strategy(*assembly.model, others);
  }
  if (sync == nullptr) return train::single_strategy(*assembly.model);
  return train::ddp_strategy(*assembly.model, ranks, *sync, strategy.hash_every);
}

void standardize_data(Assembly& assembly) try {
  const config::Experiment& experiment = assembly.experiment();
  if (!experiment.data.standardize && !assembly.standardization) return;
  if (!assembly.standardization) {
    assembly.standardization =
        data::fit_standardization(*assembly.data.train, workers_of(experiment), assembly.split.train);
  }
  for (auto* split : {&assembly.data.train, &assembly.data.test}) {
    if (*split != nullptr) *split = data::standardized(std::move(*split), *assembly.standardization);
  }
} catch (const data::DatasetError& error) {
  throw Error(error.code(), config::error(assembly.loaded.sources, "data." + error.key(), error.what()));
}

void check_training_data(const Assembly& assembly, int world) {
  const int ranks = training_ranks(assembly.experiment(), world);
  const int64_t of_rank = rank_batch(assembly.loaded, world), batch = of_rank * ranks;
  const int64_t samples = assembly.train_samples();
  const Last last = last_of(assembly.experiment());
  if (last == Last::drop && samples < batch) {
    throw Error(ExitCode::usage,
                config::error(assembly.loaded.sources, "data.last",
                              "leaves nothing to train on: " + std::to_string(samples) +
                                  (samples == 1 ? " sample is" : " samples are") + " less than one batch of " +
                                  std::to_string(batch) + "; use \"pad\" or \"exact\", or a smaller data.batch_size"));
  }
  const int64_t steps = train::steps_of_epoch(*position_sampler(assembly, 0, ranks), of_rank, ranks, last);
  step_options(assembly.loaded, ranks, steps);
  steps_to_trace(assembly.loaded, steps);
}

std::unique_ptr<train::DataLoader> test_loader(const Assembly& assembly, const launch::World& world) {
  return evaluation_loader(assembly, world, *assembly.data.test, {});
}

DataLoaders make_loaders(const Assembly& assembly, const launch::World& world) {
  const auto sampler_of = [&assembly, ranks = training_ranks(assembly.experiment(), world.size)](int rank) {
    return data::subset_sampler(position_sampler(assembly, rank, ranks), assembly.split.train);
  };
  DataLoaders loaders;
  loaders.train = loader_of(assembly, world, *assembly.data.train, sampler_of, last_of(assembly.experiment()));
  if (assembly.has_validation()) {
    loaders.validation = evaluation_loader(assembly, world, *assembly.data.train, assembly.split.validation);
  }
  if (assembly.has_test()) loaders.test = test_loader(assembly, world);
  return loaders;
}

}  // namespace ddprun::run
