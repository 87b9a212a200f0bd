#include "cli/run/session.hpp"

#include "base/version.hpp"
#include "cli/run/faults.hpp"
#include "cli/run/resume.hpp"
#include "cli/run/step_options.hpp"
#include "cli/run/strategy.hpp"
#include "cli/run/tracing.hpp"
#include "ddprun/zero.hpp"
#include "train/loop/checkpointing.hpp"
#include "train/loop/parity.hpp"

namespace ddprun::run {
namespace {

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const config::Experiment& experiment,
                                                        const std::vector<train::NamedTensor>& parameters,
                                                        const Group& group, int world) {
  const train::OptimizerOptions options = optimizer_options(experiment.optimizer, world);
  auto whole = train::make_optimizer(options, parameters);
  if (!group.ranks || experiment.strategy.zero == 0) return whole;
  const auto make = [options](const ShardedOptimizer::Groups& groups) {
    std::vector<train::NamedTensor> mine;
    for (const auto& tensor : groups.at(0).params()) mine.push_back({"", tensor});
    return train::make_optimizer(options, mine);
  };
  return std::make_unique<ShardedOptimizer>(whole->param_groups(), *group.ranks, make);
}

// The parameters whose state this rank keeps, under ZeRO.
std::optional<std::vector<train::NamedTensor>> shard_of(const torch::optim::Optimizer& optimizer,
                                                        const std::vector<train::NamedTensor>& parameters, int rank) {
  const auto* const sharded = dynamic_cast<const ShardedOptimizer*>(&optimizer);
  if (sharded == nullptr) return std::nullopt;
  std::vector<train::NamedTensor> mine;
  for (const train::NamedTensor& parameter : parameters) {
    if (sharded->owner(parameter.tensor) == rank) mine.push_back(parameter);
  }
  return mine;
}

}  // namespace

Session::Session(Assembly& assembly, Group& group, const launch::World& world, const RunFolder& folder,
                 record::Recorder& recorder)
    : experiment_(assembly.experiment()),
      ranks_(rank_group(assembly, group)),
      parameters_(train::trainable_parameters(assembly.model->module())),
      optimizer_(make_optimizer(experiment_, parameters_, group, world.size)),
      loaders_(make_loaders(assembly, world)),
      launcher_link_(world.local_rank, group.progress(), group.recorder.get()),
      agreement_({.stop_requested = [this] { return launcher_link_.stop_requested(); },
                  .checkpoint_seconds = experiment_.checkpoint.every_time,
                  .clock = {}}),
      record_writer_(recorder) {
  if (const int64_t steps = experiment_.log.parity_steps; steps > 0) {
    parity_ = std::make_unique<train::ParityLog>(recorder.run_dir(), world.rank, parameters_, steps);
  }
  synchronize_batch_norm(assembly, group);
  sync_ = make_sync(assembly, group);
  make_checkpointer(assembly, folder, world);
  graph_ = make_graph(assembly);
  strategy_ = make_strategy(assembly, ranks_, sync_.get());
  const train::Plan plan{experiment_.train.epochs, experiment_.train.steps, experiment_.train.evaluate};
  trainer_ = std::make_unique<train::TrainingLoop>(train::TrainerDeps{
      .model = *assembly.model,
      .optimizer = *optimizer_,
      .strategy = *strategy_,
      .ranks = ranks_,
      .train = *loaders_.train,
      .validation = loaders_.validation.get(),
      .test = loaders_.test.get(),
      .callbacks = make_callbacks(assembly, world, recorder),
      .plan = plan,
      .step = step_options(assembly.loaded, world.size, loaders_.train->steps()),
      .graph = graph_.get(),
  });
}

std::unique_ptr<train::GradientSync> Session::make_sync(const Assembly& assembly, Group& group) {
  if (parity_ == nullptr) return run::make_sync(assembly, group);
  return run::make_sync(assembly, group, [&](train::BucketedReducer& reducer) {
    return train::parity_reducer(reducer, *group.backend, parameters_, *parity_, ranks_.timeout());
  });
}

void Session::make_checkpointer(Assembly& assembly, const RunFolder& folder, const launch::World& world) {
  const std::string& run_dir = folder.path();
  train::CheckpointerOptions options;
  options.dir = run_dir + "/checkpoints";
  if (world.rank == 0) {
    folder_ = std::make_unique<checkpoint::CheckpointFolder>(options.dir, experiment_.checkpoint.keep);
  }
  options.folder = folder_.get();
  options.state_metadata = state_metadata(assembly, run_dir, world.size, loaders_.train->steps());
  options.metadata = {
      {"ddprun", version()}, {"model", experiment_.model.name}, {"run", options.state_metadata.at("run")}};
  if (assembly.standardization) options.metadata[kStandardize] = data::to_text(*assembly.standardization);
  options.best = experiment_.checkpoint.best;
  options.seed = static_cast<uint64_t>(experiment_.experiment.seed);
  if (assembly.resume) options.resume = std::move(assembly.resume->from);
  if (folder.is_split()) {
    options.gather = [&folder, timeout = ranks_.timeout()](const auto& state_of) {
      folder.move_to_rank0(state_of, timeout);
    };
  }
  const bool own_buffers = sync_ != nullptr && !experiment_.strategy.broadcast_buffers;
  const std::vector<torch::Device> gpus = assembly.device().is_cpu() ? std::vector<torch::Device>{} : assembly.devices;
  train::BucketedReducer* const reducer = sync_ != nullptr ? &sync_->reducer() : nullptr;
  checkpointer_ = train::run_checkpointer({assembly.model->module(), *optimizer_, parameters_, reducer, world.rank,
                                           own_buffers, gpus, shard_of(*optimizer_, parameters_, world.rank)},
                                          std::move(options));
}

std::vector<train::Callback*> Session::make_callbacks(const Assembly& assembly, const launch::World& world,
                                                      record::Recorder& recorder) {
  const config::Experiment::Train& training = experiment_.train;
  const int64_t log_every = experiment_.log.every, balance_steps = experiment_.data.balance_steps;
  std::vector<train::Callback*> callbacks{&launcher_link_};
  const auto add = [&](train::Callback* callback) { callbacks.push_back(callback); };

  fault_ = fault_of(experiment_.faults, world.rank, parameters_);
  if (fault_ != nullptr) add(fault_.get());
  if (const bool skip = training.check_gradients == "skip";
      skip || training.check_gradients == "stop" ||
      (training.check_gradients == "auto" && assembly.device().is_cpu())) {
    using Check = train::GradientCheck;
    gradient_check_ = std::make_unique<Check>(parameters_, skip ? Check::Then::skip : Check::Then::stop);
    add(gradient_check_.get());
  }

  const bool may_fail = experiment_.checkpoint.on_error == "warn";
  checkpoints_ = std::make_unique<train::CheckpointCallback>(
      *checkpointer_, train::CheckpointRule{experiment_.checkpoint.every_epochs, experiment_.checkpoint.every_steps,
                                            may_fail, log_every});
  add(checkpoints_.get());
  add(&agreement_);
  if (world.rank == 0) {
    progress_ = std::make_unique<ConsoleProgress>(world.size, log_every, training.epochs.value_or(0));
  }
  if (balance_steps > 0) {
    load_balance_ = std::make_unique<train::LoadBalance>(balance_steps, [this](const auto& samples) {
      if (progress_ != nullptr) progress_->on_batch_weights(samples);
    });
    add(load_balance_.get());
  }
  add(&record_writer_);
  if (world.rank == 0 && experiment_.log.tensorboard) {
    event_writer_ = std::make_unique<EventWriter>(recorder.run_dir(), world.size, log_every);
    add(event_writer_.get());
  }
  if (assembly.device().is_cuda()) {
    gpu_watch_ = std::make_unique<GpuWatch>(assembly.devices, recorder, log_every);
    add(gpu_watch_.get());
  }
  if (progress_ != nullptr) add(progress_.get());
  if (std::vector<int64_t> steps = steps_to_trace(assembly.loaded, loaders_.train->steps()); !steps.empty()) {
    tracer_ = std::make_unique<train::Tracer>(std::move(steps));
    if (sync_ != nullptr) tracer_->trace_allreduces_of(sync_->reducer());
    add(tracer_.get());
  }
  if (parity_ != nullptr) add(parity_.get());
  if (!experiment_.checkpoint.best.empty()) {
    best_weights_ = std::make_unique<train::BestWeights>(*checkpointer_, experiment_.checkpoint.best, may_fail);
    add(best_weights_.get());
  }
  if (!training.early_stop.empty()) {
    early_stop_ = std::make_unique<train::EarlyStop>(
        train::EarlyStopRule{training.early_stop, training.patience, training.min_delta});
    add(early_stop_.get());
  }
  return callbacks;
}

}  // namespace ddprun::run
