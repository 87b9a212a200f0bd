#include "cli/run/session.hpp"

#include "base/log.hpp"
#include "base/version.hpp"
#include "cli/run/resume.hpp"
#include "cli/run/training.hpp"
#include "ddprun/zero.hpp"
#include "train/loop/policies.hpp"

namespace ddprun::run {
namespace {

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

void log_batch_weights(const std::vector<int64_t>& samples) {
  std::string text;
  for (const int64_t count : samples) text += (text.empty() ? "" : ", ") + std::to_string(count);
  log::info("samples of a step by the ranks' speeds: " + text);
}

}  // namespace

Session::Session(Assembly& assembly, Connections& connections, const launch::World& world, const RunFolder& folder,
                 record::Recorder& recorder)
    : experiment_(assembly.experiment()),
      parameters_(train::trainable_parameters(assembly.model->module())),
      optimizer_(make_optimizer(experiment_, parameters_, connections, world.size)),
      loaders_(make_loaders(assembly, world)),
      launcher_link_(world.local_rank, connections.progress(), connections.recorder.get()),
      agreement_({.stop_requested = [this] { return launcher_link_.stop_requested(); },
                  .checkpoint_seconds = experiment_.checkpoint.every_time,
                  .clock = {}}) {
  if (const int64_t steps = experiment_.log.parity_steps; steps > 0) {
    parity_ = std::make_unique<train::ParityLog>(recorder.run_dir(), world.rank, parameters_, steps);
  }
  synchronize_batch_norm(assembly, connections);
  std::function<std::unique_ptr<Reducer>(train::BucketedReducer&)> wrap;
  if (parity_ != nullptr) {
    wrap = [&](train::BucketedReducer& reducer) {
      return train::parity_reducer(reducer, connections.ranks, parameters_, *parity_);
    };
  }
  sync_ = make_sync(assembly, connections, std::move(wrap));
  make_checkpointer(assembly, folder, world);
  graph_ = make_graph(assembly);
  strategy_ = make_strategy(assembly, connections.ranks, sync_.get());
  const train::Plan plan{experiment_.train.epochs, experiment_.train.steps, experiment_.train.evaluate};
  trainer_ = std::make_unique<train::TrainingLoop>(train::TrainerDeps{
      .model = *assembly.model,
      .optimizer = *optimizer_,
      .strategy = *strategy_,
      .ranks = connections.ranks,
      .train = *loaders_.train,
      .validation = loaders_.validation.get(),
      .test = loaders_.test.get(),
      .checkpoints = checkpoints_.get(),
      .observers = make_observers(assembly, world, recorder),
      .policies = make_policies(assembly, world),
      .plan = plan,
      .step = step_options(assembly.loaded, world.size, loaders_.train->steps()),
      .graph = graph_.get(),
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
    options.gather = [&folder](const auto& state_of) { folder.move_to_rank0(state_of); };
  }
  const bool own_buffers = sync_ != nullptr && !experiment_.strategy.broadcast_buffers;
  const std::vector<torch::Device> gpus = assembly.device().is_cpu() ? std::vector<torch::Device>{} : assembly.devices;
  train::BucketedReducer* const reducer = sync_ != nullptr ? &sync_->reducer() : nullptr;
  checkpointer_ = train::run_checkpointer({assembly.model->module(), *optimizer_, parameters_, reducer, world.rank,
                                           own_buffers, gpus, shard_of(*optimizer_, parameters_, world.rank)},
                                          std::move(options));
  const config::Experiment::Checkpoint& rule = experiment_.checkpoint;
  checkpoints_ = std::make_unique<train::Checkpoints>(
      *checkpointer_,
      train::CheckpointRule{rule.every_epochs, rule.every_steps, rule.on_error == "warn", experiment_.log.every});
}

std::vector<train::Observer*> Session::make_observers(const Assembly& assembly, const launch::World& world,
                                                      record::Recorder& recorder) {
  const int64_t log_every = experiment_.log.every;
  const bool on_rank0 = world.rank == 0;
  const auto add = [this](std::unique_ptr<train::Observer> observer) {
    if (observer != nullptr) observers_.push_back(std::move(observer));
  };
  add(fault_of(experiment_.faults, world.rank, parameters_));
  add(record_writer(recorder));
  if (on_rank0 && experiment_.log.tensorboard) add(event_writer(recorder.run_dir(), world.size, log_every));
  if (assembly.device().is_cuda()) add(gpu_watch(assembly.devices, recorder, log_every));
  if (on_rank0) add(console_progress(world.size, log_every, experiment_.train.epochs.value_or(0)));
  if (std::vector<int64_t> steps = steps_to_trace(assembly.loaded, loaders_.train->steps()); !steps.empty()) {
    auto tracer = std::make_unique<train::Tracer>(std::move(steps));
    if (sync_ != nullptr) tracer->trace_allreduces_of(sync_->reducer());
    tracer_ = tracer.get();
    add(std::move(tracer));
  }
  std::vector<train::Observer*> all{&launcher_link_};
  for (const auto& observer : observers_) all.push_back(observer.get());
  if (parity_ != nullptr) all.push_back(parity_.get());
  return all;
}

std::vector<train::Policy*> Session::make_policies(const Assembly& assembly, const launch::World& world) {
  const config::Experiment::Train& training = experiment_.train;
  const auto add = [this](auto policy) { policies_.push_back(std::move(policy)); };
  if (const bool skip = training.check_gradients == "skip";
      skip || training.check_gradients == "stop" ||
      (training.check_gradients == "auto" && assembly.device().is_cpu())) {
    using Check = train::GradientCheck;
    add(std::make_unique<Check>(parameters_, skip ? Check::Then::skip : Check::Then::stop));
  }
  if (experiment_.data.balance_steps > 0) {
    add(std::make_unique<train::LoadBalance>(experiment_.data.balance_steps,
                                             [on_rank0 = world.rank == 0](const auto& samples) {
                                               if (on_rank0) log_batch_weights(samples);
                                             }));
  }
  if (const auto& checkpoint = experiment_.checkpoint; !checkpoint.best.empty()) {
    add(std::make_unique<train::BestWeights>(*checkpointer_, checkpoint.best, checkpoint.on_error == "warn"));
  }
  if (!training.early_stop.empty()) {
    add(std::make_unique<train::EarlyStop>(
        train::EarlyStopRule{training.early_stop, training.patience, training.min_delta}));
  }
  std::vector<train::Policy*> all{&agreement_};
  for (const auto& policy : policies_) all.push_back(policy.get());
  return all;
}

}  // namespace ddprun::run
