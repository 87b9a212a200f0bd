#include "app/run/session.hpp"

#include "base/version.hpp"
#include "app/run/resume.hpp"
#include "app/run/step_options.hpp"
#include "app/run/strategy.hpp"
#include "app/run/tracing.hpp"
#include "train/reduce/parity_reducer.hpp"
#include "train/loop/run_checkpointer.hpp"

namespace ddprun::run {

Session::Session(Assembly& assembly, Group& group, const launch::World& world, record::Recorder& recorder,
                 ObserverOptions options)
    : experiment_(assembly.experiment()),
      observer_(recorder, options),
      parameters_(train::trainable_parameters(assembly.model->module())),
      optimizer_(train::make_optimizer(experiment_, parameters_, world.size)),
      loaders_(make_loaders(assembly, world)) {
  if (std::vector<int64_t> steps = steps_to_trace(assembly.loaded, loaders_.train->steps()); !steps.empty()) {
    tracer_ = std::make_unique<train::Tracer>(observer_, std::move(steps));
  }
  if (const int64_t steps = experiment_.log.parity_steps; steps > 0) {
    parity_ = std::make_unique<train::ParityLog>(recorder.run_dir(), world.rank, parameters_, steps);
  }
  reducer_ = make_reducer(assembly, group, [this](int bucket) { waiting_for(bucket); });
  if (parity_ != nullptr && reducer_ != nullptr) {
    reducer_ = train::parity_reducer(std::move(reducer_), *group.backend, parameters_, *parity_,
                                     milliseconds(experiment_.comm.timeout));
  }
  if (tracer_ != nullptr && reducer_ != nullptr) tracer_->follow(*reducer_);
  make_checkpointer(assembly, recorder.run_dir(), world);
  graph_ = make_graph(assembly);
  trainer_ = make_trainer(parts(assembly, world.size), assembly, group, reducer_.get());
}

void Session::make_checkpointer(Assembly& assembly, const std::string& run_dir, const launch::World& world) {
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
  if (assembly.resume) options.resume = assembly.resume->from;
  const bool own_buffers = reducer_ != nullptr && !experiment_.strategy.sync_buffers;
  const std::vector<torch::Device> gpus = assembly.device().is_cpu() ? std::vector<torch::Device>{} : assembly.devices;
  checkpointer_ = train::run_checkpointer(
      {assembly.model->module(), *optimizer_, parameters_, reducer_.get(), world.rank, own_buffers, gpus}, options);
}

train::Observer& Session::news() {
  if (tracer_ != nullptr) return *tracer_;
  return observer_;
}

void Session::waiting_for(int bucket) {
  observer_.waiting_for(bucket);
  if (tracer_ != nullptr) tracer_->waiting_for(bucket);
}

train::Parts Session::parts(Assembly& assembly, int world) {
  train::Parts parts{*assembly.model, *optimizer_, *loaders_.train, loaders_.test.get(), news(), checkpointer_.get(), {}};
  parts.plan = {experiment_.train.epochs,     experiment_.train.steps,     experiment_.train.evaluate,
                experiment_.checkpoint.every, experiment_.checkpoint.best, experiment_.data.balance_steps};
  parts.plan.early_stop = {experiment_.train.early_stop, experiment_.train.patience, experiment_.train.min_delta};
  parts.step = step_options(assembly.loaded, world, loaders_.train->steps());
  parts.parity = parity_.get();
  parts.graph = graph_.get();
  return parts;
}

}  // namespace ddprun::run
