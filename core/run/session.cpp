#include "run/session.hpp"

#include <algorithm>

#include "base/version.hpp"
#include "run/resume.hpp"
#include "run/step_options.hpp"
#include "train/parity_reducer.hpp"
#include "train/run_checkpointer.hpp"

namespace ddprun::run {
namespace {

constexpr int kMostAutoWorkers = 8;

std::unique_ptr<data::Sampler> train_sampler(const config::Experiment& experiment, int64_t samples,
                                             const launch::World& world) {
  const auto& data = experiment.data;
  const auto seed = static_cast<uint64_t>(experiment.experiment.seed);
  const bool distributed =
      data.sampler == "distributed" || (data.sampler == "auto" && experiment.strategy.kind == "ddp");
  if (distributed) {
    const auto last = data.last == "drop"    ? data::Last::drop
                      : data.last == "exact" ? data::Last::exact
                                             : data::Last::pad;
    return data::distributed_sampler(samples, world.rank, world.size, seed, data.shuffle, last);
  }
  const bool random = data.sampler == "random" || (data.sampler == "auto" && data.shuffle);
  return random ? data::random_sampler(samples, seed) : data::sequential_sampler(samples);
}

}  // namespace

Session::Session(Assembly& assembly, Group& group, const launch::World& world, record::Recorder& recorder,
                 ObserverOptions options)
    : experiment_(assembly.experiment()),
      observer_(recorder, options),
      parameters_(train::trainable_parameters(assembly.model->module())),
      optimizer_(train::make_optimizer(experiment_, parameters_, world.size)) {
  make_feeds(assembly, world);
  if (const int64_t steps = experiment_.log.parity_steps; steps > 0) {
    parity_ = std::make_unique<train::ParityLog>(recorder.run_dir(), world.rank, parameters_, steps);
  }
  if (group.backend != nullptr) make_reducer(*group.backend);
  make_checkpointer(assembly, recorder.run_dir(), world);
  trainer_ = make_trainer(assembly, group);
}

void Session::make_feeds(Assembly& assembly, const launch::World& world) {
  const auto& data = experiment_.data;
  const int64_t batch = rank_batch(assembly.loaded, world.size);
  const int workers = data.workers < 0 ? std::min(usable_cores(), kMostAutoWorkers) : static_cast<int>(data.workers);
  const data::LoaderOptions loader{workers, static_cast<int>(data.prefetch)};
  train_ = std::make_unique<train::Feed>(*assembly.data.train,
                                         train_sampler(experiment_, assembly.data.train->size(), world), batch,
                                         world.rank, world.size, loader);
  if (!experiment_.train.evaluate) return;
  // Every test sample once, whatever the ranks: an average over padded samples would not be the model's accuracy.
  test_ = std::make_unique<train::Feed>(
      *assembly.data.test,
      data::distributed_sampler(assembly.data.test->size(), world.rank, world.size, 0, false, data::Last::exact), batch,
      world.rank, world.size, loader);
}

void Session::make_checkpointer(Assembly& assembly, const std::string& run_dir, const launch::World& world) {
  train::CheckpointerOptions options;
  options.dir = run_dir + "/checkpoints";
  if (world.rank == 0) {
    folder_ = std::make_unique<checkpoint::CheckpointFolder>(options.dir, experiment_.checkpoint.keep);
  }
  options.folder = folder_.get();
  options.state_metadata = state_metadata(assembly, run_dir, world.size, train_->steps());
  options.metadata = {
      {"ddprun", version()}, {"model", experiment_.model.name}, {"run", options.state_metadata.at("run")}};
  options.best = experiment_.checkpoint.best;
  options.seed = static_cast<uint64_t>(experiment_.experiment.seed);
  if (assembly.resume) options.resume = assembly.resume->from;
  const bool own_buffers = reducer_ != nullptr && !experiment_.strategy.sync_buffers;
  checkpointer_ = train::run_checkpointer(
      {assembly.model->module(), *optimizer_, parameters_, reducer_.get(), world.rank, own_buffers}, options);
}

std::unique_ptr<train::Trainer> Session::make_trainer(Assembly& assembly, Group& group) {
  train::Parts parts{*assembly.model, *optimizer_, *train_, test_.get(), observer_, checkpointer_.get(), {}};
  parts.plan = {experiment_.train.epochs, experiment_.train.steps, experiment_.train.evaluate,
                experiment_.checkpoint.every, experiment_.checkpoint.best};
  parts.plan.early_stop = {experiment_.train.early_stop, experiment_.train.patience, experiment_.train.min_delta};
  const int world = group.backend == nullptr ? 1 : group.backend->size();
  parts.step = step_options(assembly.loaded, world, train_->steps());
  parts.parity = parity_.get();
  if (experiment_.strategy.kind == "dp") return make_dp(parts, assembly.replicas);
  return group.backend == nullptr ? train::single_trainer(parts) : make_ddp(parts, *group.backend);
}

std::unique_ptr<train::Trainer> Session::make_dp(train::Parts parts, const std::vector<train::ModelPtr>& replicas) {
  std::vector<Model*> others;
  for (const train::ModelPtr& replica : replicas) others.push_back(replica.get());
  return train::dp_trainer(parts, others, static_cast<int>(experiment_.strategy.main_device));
}

void Session::make_reducer(comm::CommBackend& backend) {
  const auto& strategy = experiment_.strategy;
  constexpr double kMiB = 1024 * 1024;
  train::ReducerOptions options;
  options.bucket_bytes = static_cast<std::size_t>(strategy.bucket_mb * kMiB);
  options.first_bucket_bytes = static_cast<std::size_t>(strategy.first_bucket_mb * kMiB);
  options.unused = strategy.unused == "zero" ? train::Unused::zero : train::Unused::error;
  options.timeout = milliseconds(experiment_.comm.timeout);
  options.on_wait = [this](int bucket) { observer_.waiting_for(bucket); };
  reducer_ = train::bucketed_reducer(backend, parameters_, options);
  if (parity_ == nullptr) return;
  reducer_ = train::parity_reducer(std::move(reducer_), backend, parameters_, *parity_, options.timeout);
}

std::unique_ptr<train::Trainer> Session::make_ddp(train::Parts parts, comm::CommBackend& backend) {
  const auto& strategy = experiment_.strategy;
  const auto timeout = milliseconds(experiment_.comm.timeout);
  return train::ddp_trainer(parts, backend, *reducer_, {strategy.sync_buffers, strategy.hash_every, timeout});
}

}  // namespace ddprun::run
