#include "cli/run/session.hpp"

#include "base/log.hpp"
#include "base/text.hpp"
#include "cli/run/resume.hpp"
#include "ddprun/zero.hpp"
#include "train/loop/policies.hpp"

namespace ddprun::run {
namespace {

// In call order.
std::vector<train::Observer*> all_observers(Session& session, const Assembly& assembly, const launch::World& world,
                                            record::Recorder& recorder) {
  session.observers = make_observers(assembly, world, session.parameters, recorder);
  if (std::vector<int64_t> steps = steps_to_trace(assembly.loaded, session.loaders.train->steps()); !steps.empty()) {
    session.tracer = std::make_unique<train::Tracer>(std::move(steps));
    if (session.sync != nullptr) session.tracer->trace_allreduces_of(session.sync->reducer());
  }
  std::vector<train::Observer*> all{session.launcher_link.get()};
  for (const auto& observer : session.observers) all.push_back(observer.get());
  if (session.tracer != nullptr) all.push_back(session.tracer.get());
  return all;
}

// In call order.
std::vector<train::Policy*> make_policies(Session& session, const Assembly& assembly, const launch::World& world,
                                          elastic::Survivor* survivor) {
  const config::Experiment& experiment = assembly.experiment();
  const config::Experiment::Train& training = experiment.train;
  const auto add = [&](auto policy) { session.policies.push_back(std::move(policy)); };
  if (const bool skip = training.check_gradients == "skip";
      skip || training.check_gradients == "stop" ||
      (training.check_gradients == "auto" && assembly.device().is_cpu())) {
    using Check = train::GradientCheck;
    add(std::make_unique<Check>(session.parameters, skip ? Check::Then::skip : Check::Then::stop));
  }
  if (experiment.data.balance_steps > 0) {
    const auto report = [on_rank0 = world.rank == 0](const std::vector<int64_t>& samples) {
      std::string text;
      for (const int64_t count : samples) text += (text.empty() ? "" : ", ") + std::to_string(count);
      if (on_rank0) log::info("samples of a step by the ranks' speeds: " + text);
    };
    add(std::make_unique<train::LoadBalance>(experiment.data.balance_steps, report));
  }
  if (const auto& checkpoint = experiment.checkpoint; !checkpoint.best.empty()) {
    add(std::make_unique<train::BestWeights>(*session.checkpointer, checkpoint.best, checkpoint.on_error == "warn"));
  }
  if (!training.early_stop.empty()) {
    add(std::make_unique<train::EarlyStop>(
        train::EarlyStopRule{training.early_stop, training.patience, training.min_delta}));
  }
  std::vector<train::Policy*> all{session.agreement.get()};
  for (const auto& policy : session.policies) all.push_back(policy.get());
  if (survivor != nullptr) all.push_back(survivor);  // after those that change the position
  return all;
}

void add_checkpoints(Session& session, Assembly& assembly, const RunFolder& folder, const launch::World& world) {
  const config::Experiment& experiment = assembly.experiment();
  const std::string& run_dir = folder.path();
  train::CheckpointerOptions options;
  options.dir = run_dir + "/checkpoints";
  if (world.rank == 0) {
    session.folder = std::make_unique<checkpoint::CheckpointFolder>(options.dir, experiment.checkpoint.keep);
  }
  options.folder = session.folder.get();
  options.state_metadata = state_metadata(assembly, run_dir, world.size, session.loaders.train->steps());
  options.metadata = {
      {"ddprun", version()}, {"model", experiment.model.name}, {"run", options.state_metadata.at("run")}};
  if (assembly.standardization) options.metadata[kStandardize] = data::to_text(*assembly.standardization);
  options.best = experiment.checkpoint.best;
  options.seed = static_cast<uint64_t>(experiment.experiment.seed);
  if (assembly.resume) options.resume = std::move(assembly.resume->from);
  if (folder.is_split()) {
    options.gather = [&folder, &experiment, ranks = world.size](const auto& state_of) {
      const int most = training_share(experiment, 0, ranks).count;
      for (int part = 0; part < most; ++part) {
        folder.move_to_rank0([&](int rank) {
          const elastic::Range share = training_share(experiment, rank, ranks);
          return part < share.count ? state_of(share.first + part) : "";
        });
      }
    };
  }
  const bool own_buffers = session.sync != nullptr && !experiment.strategy.broadcast_buffers;
  const std::vector<torch::Device> gpus = assembly.device().is_cpu() ? std::vector<torch::Device>{} : assembly.devices;
  train::BucketedReducer* const reducer = session.sync != nullptr ? &session.sync->reducer() : nullptr;
  std::function<void()> consolidate;
  if (auto* const sharded = dynamic_cast<ShardedOptimizer*>(session.optimizer.get())) {
    consolidate = [sharded] { sharded->consolidate_state_dict(0); };
  }
  const elastic::Range share = training_share(experiment, world.rank, world.size);
  const auto in_part = [on = session.virtual_ranks.get()](int part, const std::function<void()>& body) {
    on == nullptr ? body() : on->states().run(part, body);
  };
  session.checkpointer =
      train::run_checkpointer({assembly.model->module(), *session.optimizer, session.parameters, reducer, share.first,
                               own_buffers, gpus, share.count, in_part, std::move(consolidate)},
                              std::move(options));
  const config::Experiment::Checkpoint& rule = experiment.checkpoint;
  session.checkpoints = std::make_unique<train::Checkpoints>(
      *session.checkpointer,
      train::CheckpointRule{rule.every_epochs, rule.every_steps, rule.on_error == "warn", experiment.log.every});
}

}  // namespace

std::unique_ptr<Session> make_session(Assembly& assembly, Connections& connections, const launch::World& world,
                                      const RunFolder& folder, record::Recorder& recorder,
                                      elastic::Survivor* survivor) {
  const config::Experiment& experiment = assembly.experiment();
  auto made = std::make_unique<Session>();
  Session& session = *made;
  session.parameters = train::trainable_parameters(assembly.model->module());
  const int ranks = training_ranks(experiment, world.size);
  session.optimizer = make_optimizer(experiment, session.parameters, connections, ranks);
  session.loaders = make_loaders(assembly, world);
  session.launcher_link =
      std::make_unique<LauncherLink>(world.local_rank, connections.progress(), connections.recorder.get());
  session.agreement = std::make_unique<train::Agreement>(
      train::AgreementOptions{.stop_requested = [&link = *session.launcher_link] { return link.stop_requested(); },
                              .checkpoint_seconds = experiment.checkpoint.every_time,
                              .clock = {}});
  synchronize_batch_norm(assembly, connections);
  session.sync = make_sync(assembly, connections);
  session.virtual_ranks = make_virtual_ranks(assembly, connections, session.sync.get(), survivor);
  add_checkpoints(session, assembly, folder, world);
  session.strategy = make_strategy(assembly, connections.ranks, session.sync.get());
  if (auto* const on = session.virtual_ranks.get()) {
    session.strategy = on->strategy(*assembly.model, std::move(session.strategy));
  }
  session.trainer = std::make_unique<train::TrainingLoop>(train::TrainerDeps{
      .model = *assembly.model,
      .optimizer = *session.optimizer,
      .strategy = *session.strategy,
      .ranks = connections.ranks,
      .train = *session.loaders.train,
      .validation = session.loaders.validation.get(),
      .test = session.loaders.test.get(),
      .checkpoints = session.checkpoints.get(),
      .observers = all_observers(session, assembly, world, recorder),
      .policies = make_policies(session, assembly, world, survivor),
      .plan = {experiment.train.epochs, experiment.train.steps, experiment.train.evaluate},
      .step = step_options(assembly.loaded, ranks, session.loaders.train->steps()),
  });
  return made;
}

}  // namespace ddprun::run
