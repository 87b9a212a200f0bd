#include "run/rank.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "checkpoint/folder.hpp"
#include "launch/supervisor.hpp"
#include "record/environment.hpp"
#include "record/recorder.hpp"
#include "record/run_dir.hpp"
#include "report/console.hpp"
#include "run/assembly.hpp"
#include "run/group.hpp"
#include "run/memory.hpp"
#include "run/run_observer.hpp"
#include "train/checkpointer.hpp"
#include "train/optimizers.hpp"
#include "train/reducer.hpp"
#include "train/trainer.hpp"

namespace ddprun::run {
namespace {

int64_t use_threads(const config::Experiment& experiment, const launch::World& world) {
  const int64_t threads = experiment.launch.threads > 0 ? experiment.launch.threads
                                                        : std::max(1, usable_cores() / std::max(1, world.local_size));
  torch::set_num_threads(static_cast<int>(threads));
  return threads;
}

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

// What trains, built from an assembly and a group: members in the order in which they depend on one another.
class Session {
 public:
  Session(Assembly& assembly, Group& group, const launch::World& world, record::Recorder& recorder,
          ObserverOptions options)
      : experiment_(assembly.experiment()),
        observer_(recorder, options),
        parameters_(train::trainable_parameters(assembly.model->module())),
        optimizer_(train::make_optimizer(experiment_, parameters_, world.size)) {
    const auto& data = experiment_.data;
    const int64_t batch = rank_batch(assembly.loaded, world.size);
    const data::LoaderOptions loader{static_cast<int>(data.workers), static_cast<int>(data.prefetch)};
    train_ = std::make_unique<train::Feed>(*assembly.data.train,
                                           train_sampler(experiment_, assembly.data.train->size(), world), batch,
                                           world.rank, world.size, loader);
    // Every test sample once, whatever the ranks: an average over padded samples would not be the model's accuracy.
    if (experiment_.train.evaluate) {
      test_ = std::make_unique<train::Feed>(
          *assembly.data.test,
          data::distributed_sampler(assembly.data.test->size(), world.rank, world.size, 0, false, data::Last::exact),
          batch, world.rank, world.size, loader);
    }
    if (world.rank == 0) {
      folder_ = std::make_unique<checkpoint::CheckpointFolder>(recorder.run_dir() + "/checkpoints",
                                                               experiment_.checkpoint.keep);
      checkpointer_ = train::model_checkpointer(assembly.model->module(), *folder_,
                                                {{"ddprun", version()}, {"model", experiment_.model.name}});
    }
    make_trainer(assembly, group);
  }

  train::Trainer& trainer() { return *trainer_; }
  const train::Feed& feed() const { return *train_; }
  const RunObserver& observer() const { return observer_; }

 private:
  void make_trainer(Assembly& assembly, Group& group) {
    train::Parts parts{*assembly.model, *optimizer_, *train_, test_.get(), observer_, checkpointer_.get(), {}};
    parts.plan = {experiment_.train.epochs, experiment_.train.steps, experiment_.train.evaluate,
                  experiment_.checkpoint.every};
    if (group.backend == nullptr) {
      trainer_ = train::single_trainer(parts);
      return;
    }
    const auto& strategy = experiment_.strategy;
    const auto timeout = milliseconds(experiment_.comm.timeout);
    constexpr double kMiB = 1024 * 1024;
    train::ReducerOptions options;
    options.bucket_bytes = static_cast<std::size_t>(strategy.bucket_mb * kMiB);
    options.first_bucket_bytes = static_cast<std::size_t>(strategy.first_bucket_mb * kMiB);
    options.unused = strategy.unused == "zero" ? train::Unused::zero : train::Unused::error;
    options.timeout = timeout;
    options.on_wait = [this](int bucket) { observer_.waiting_for(bucket); };
    reducer_ = train::bucketed_reducer(*group.backend, parameters_, options);
    trainer_ =
        train::ddp_trainer(parts, *group.backend, *reducer_, {strategy.sync_buffers, strategy.hash_every, timeout});
  }

  const config::Experiment& experiment_;
  RunObserver observer_;
  const std::vector<train::NamedTensor> parameters_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<train::Feed> train_;
  std::unique_ptr<train::Feed> test_;  // null without evaluation
  std::unique_ptr<checkpoint::CheckpointFolder> folder_;
  std::unique_ptr<train::Checkpointer> checkpointer_;
  std::unique_ptr<train::Reducer> reducer_;
  std::unique_ptr<train::Trainer> trainer_;
};

report::Banner describe(const Assembly& assembly, const launch::World& world, const train::Feed& feed, int64_t threads,
                        const std::string& run_dir) {
  const config::Experiment& experiment = assembly.experiment();
  report::Banner banner;
  banner.name = experiment.experiment.name;
  banner.model = experiment.model.name;
  for (const auto& parameter : assembly.model->module().parameters()) banner.parameters += parameter.numel();
  banner.data = experiment.data.name;
  banner.train_samples = assembly.data.train->size();
  banner.test_samples = experiment.train.evaluate ? assembly.data.test->size() : 0;
  banner.strategy = experiment.strategy.kind;
  if (assembly.comm) {
    banner.backend = world.size == 1 ? "solo" : assembly.comm->table->name;
    banner.algorithm = experiment.comm.algorithm;
  }
  banner.world = world.size;
  banner.rank_batch = feed.batch_size();
  banner.global_batch = feed.batch_size() * world.size;
  banner.device = experiment.launch.device;
  banner.threads = threads;
  banner.gpu_present = std::filesystem::exists("/proc/driver/nvidia/version");
  banner.epochs = experiment.train.epochs.value_or(0);
  banner.steps = experiment.train.steps.value_or(0);
  banner.steps_per_epoch = feed.steps();
  banner.seed = experiment.experiment.seed;
  banner.run_dir = run_dir;
  return banner;
}

std::map<std::string, std::string> versions(const Assembly& assembly) {
  std::map<std::string, std::string> extra{{"torch", train::torch_version()},
                                           {"plugin.model", assembly.model_plugin.path},
                                           {"plugin.model.version", assembly.model_plugin.table->version}};
  if (!assembly.dataset_plugin.path.empty()) {
    extra["plugin.dataset"] = assembly.dataset_plugin.path;
    extra["plugin.dataset.version"] = assembly.dataset_plugin.table->version;
  }
  if (assembly.comm) {
    extra["plugin.comm"] = assembly.comm->path;
    extra["plugin.comm.version"] = assembly.comm->table->version;
    extra["plugin.comm.library"] = assembly.comm->table->library;
  }
  return extra;
}

// Tells our own launcher at once, while model, data and backend still stand: unwinding takes its time, and the peers'
// echoes must not come first. Elsewhere nobody knows the place, so the error says it.
[[noreturn]] void fail(const launch::World& world, const RunObserver& observer, ExitCode code,
                       const std::string& what) {
  launch::report_failure(world.job_dir, world.rank, code, what);
  if (!world.job_dir.empty()) throw Error(code, what);
  const std::string who = world.size > 1 ? "rank " + std::to_string(world.rank) + " " : "";
  throw Error(code, who + observer.where() + ": " + what);
}

record::Summary fit(Session& session, const launch::World& world) {
  try {
    return session.trainer().fit();
  } catch (const Error& error) {
    fail(world, session.observer(), error.code(), error.what());
  } catch (const c10::Error& error) {
    fail(world, session.observer(), ExitCode::failure, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    fail(world, session.observer(), ExitCode::failure, "out of memory");
  } catch (const std::exception& error) {
    fail(world, session.observer(), ExitCode::failure, error.what());
  }
}

void complete(record::Summary& summary, const Assembly& assembly, const launch::World& world) {
  const config::Experiment& experiment = assembly.experiment();
  summary.seed = experiment.experiment.seed;
  summary.model = experiment.model.name;
  summary.data = experiment.data.name;
  summary.strategy = experiment.strategy.kind;
  if (assembly.comm) summary.backend = world.size == 1 ? "solo" : assembly.comm->table->name;
}

void print_results(const record::Summary& summary, const std::string& run_dir) {
  const std::string text =
      report::summary_table(summary) + report::learned_line(summary.learned) + "run folder: " + run_dir + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

std::string prepare_run_dir(config::Experiment experiment, int world) {
  if (experiment.strategy.kind == "ddp") experiment.launch.nproc = world;
  std::string run_dir = record::make_run_dir(experiment.experiment.output, experiment.experiment.name);
  replace_file(run_dir + "/config.toml", config::to_toml(experiment));
  return run_dir;
}

std::string log_dir(const config::Experiment& experiment, const std::string& run_dir) {
  return experiment.launch.log_dir.empty() ? run_dir : experiment.launch.log_dir;
}

void run_rank(RankOptions options, const plugin::Registry& registry) {
  keep_freed_memory();
  const launch::World& world = options.world;
  Assembly assembly = assemble(std::move(options.loaded), registry);
  refuse_empty_epochs(assembly, world.size);
  const config::Experiment& experiment = assembly.experiment();
  const int64_t threads = use_threads(experiment, world);
  Group group = join_group(assembly, world);
  if (options.run_dir.empty()) {
    const std::string made = world.rank == 0 ? prepare_run_dir(experiment, world.size) : "";
    options.run_dir = share(group, world, "run_dir", made, milliseconds(experiment.launch.timeout));
  }
  if (options.own_log)
    log::also_to(log_dir(experiment, options.run_dir) + "/rank" + std::to_string(world.rank) + ".log");

  record::Recorder recorder(options.run_dir, world.rank);
  if (world.rank == 0) record::write_environment(options.run_dir, record::collect_environment(versions(assembly)));
  Session session(assembly, group, world, recorder,
                  {world.rank, world.size, experiment.log.every, experiment.train.epochs.value_or(0),
                   group.progress.get(), options.stop});
  if (world.rank == 0) {
    log::plain(report::banner(describe(assembly, world, session.feed(), threads, options.run_dir)));
  }
  // Initial weights were drawn from the seed, equal on all ranks; what is random from here on differs between them.
  torch::manual_seed(static_cast<uint64_t>(experiment.experiment.seed + world.rank));

  record::Summary summary = fit(session, world);
  complete(summary, assembly, world);
  recorder.summary(summary);
  if (world.rank == 0) print_results(summary, options.run_dir);
}

}  // namespace ddprun::run
