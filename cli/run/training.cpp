#include "cli/run/training.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "cli/config/experiment.hpp"
#include "cli/console/table.hpp"
#include "ddp/group_state.hpp"
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
  train::StepOptions options;
  options.accumulate = train.accumulate;
  options.clip_norm = train.clip_norm;
  options.amp = train::amp_of(train.amp);
  options.channels_last = train.channels_last;
  options.schedule = schedule_of(loaded, world, steps_per_epoch);
  return options;
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
  elastic::VirtualRanksOptions options{.count = static_cast<int>(strategy.virtual_ranks),
                                       .seed = static_cast<uint64_t>(assembly.experiment().experiment.seed),
                                       .find_unused_parameters = strategy.find_unused_parameters,
                                       .own_buffers = !strategy.broadcast_buffers,
                                       .compression = strategy.compression,
                                       .survives = survivor != nullptr,
                                       .is_checked = survivor != nullptr && survivor->members().changes() > 0};
  if (!assembly.device().is_cpu()) options.gpus = assembly.devices;
  if (!options.is_checked) {
    comm::with_heartbeat(connections.ranks, "loading the first samples", [&] {
      config::at_key(assembly.loaded.sources, "data.name",
                     [&] { elastic::require_same_samples(*assembly.data.train); });
    });
  }
  return config::at_key(assembly.loaded.sources, "comm.backend", [&] {
    return std::make_unique<elastic::VirtualRanks>(assembly.model->module(), *sync, connections.ranks, options);
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

}  // namespace ddprun::run
