#include <cstdio>
#include <cstdlib>

#include "base/log.hpp"
#include "cli/config/experiment.hpp"
#include "cli/console/console.hpp"
#include "cli/run/between_hosts.hpp"
#include "cli/run/devices.hpp"
#include "cli/run/failures.hpp"
#include "cli/run/resume.hpp"
#include "cli/run/run.hpp"
#include "cli/run/session.hpp"
#include "ddp/share.hpp"
#include "launch/failure.hpp"
#include "record/environment.hpp"
#include "record/run_dir.hpp"
#include "record/trace.hpp"
#include "train/device/cuda.hpp"

namespace ddprun::run {
namespace {

std::map<std::string, std::string> versions(const Assembly& assembly) {
  std::map<std::string, std::string> extra{{"torch", train::torch_version()}};
  const auto add = [&](const std::string& kind, const auto& plugin) {
    if (plugin.path.empty()) return;
    extra["plugin." + kind] = plugin.path;
    extra["plugin." + kind + ".version"] = plugin.table->version;
  };
  add("model", assembly.model_plugin);
  add("dataset", assembly.dataset_plugin);
  if (assembly.comm) {
    add("comm", *assembly.comm);
    extra["plugin.comm.library"] = assembly.comm->table->library;
  }
  if (const char* policy = std::getenv("OMP_WAIT_POLICY")) extra["omp_wait_policy"] = policy;
  if (!assembly.device().is_cpu()) extra.merge(train::cuda_environment());
  return extra;
}

// Reports to our own launcher, or to the other ranks, immediately, while model, data and backend still exist: stack
// unwinding takes time, and the peers' later failures must not arrive first. Without our launcher, the error itself
// names step and phase.
[[noreturn]] void fail(const launch::World& world, const Connections& connections, const LauncherLink& link,
                       CollectivesFile& collectives, const Error& error) {
  const ExitCode code = error.code();
  const std::string what = error.what();
  launch::report_failure(world.job_dir, world.rank, code, what);
  collectives.write("this rank failed: " + what, code);
  if (!world.job_dir.empty()) throw error;
  if (connections.link != nullptr) {
    if (const auto cause = connections.link->failed(error)) throw Error(*cause);
  }
  const std::string who = world.size > 1 ? "rank " + std::to_string(world.rank) + " " : "";
  throw Error(code, who + link.where() + ": " + what);
}

// This rank's trace, on the clock of rank 0. Collective.
record::RankTrace common_trace(const train::Tracer& tracer, const comm::Group& ranks, const launch::World& world) {
  record::RankTrace trace = tracer.trace();
  if (world.on_one_host() || !ranks.has_backend()) return trace;
  const int64_t ahead = clock_offset(ranks).count();
  for (record::Span& span : trace.spans) {
    span.begin -= ahead;
    span.end -= ahead;
  }
  return trace;
}

record::Summary fit(Session& session, const Connections& connections, const launch::World& world,
                    const RunFolder& folder, record::Recorder& recorder, CollectivesFile& collectives) {
  try {
    record::Summary summary = session.trainer->fit();
    recorder.flush();
    if (session.tracer != nullptr) {
      const record::RankTrace trace = common_trace(*session.tracer, connections.ranks, world);
      const auto events = connections.ranks.gather(record::events_of(trace, world.rank));
      if (world.rank == 0) record::write_trace(folder.path(), events);
    }
    folder.gather();
    return summary;
  } catch (...) {
    fail(world, connections, *session.launcher_link, collectives, ddp::current_error());
  }
}

void complete(record::Summary& summary, const Assembly& assembly, const launch::World& world) {
  const config::Experiment& experiment = assembly.experiment();
  summary.seed = experiment.experiment.seed;
  summary.model = experiment.model.name;
  summary.data = experiment.data.name;
  summary.strategy = experiment.strategy.kind;
  if (assembly.comm) summary.backend = world.size == 1 ? "single-process" : assembly.comm->table->name;
}

void print_results(const record::Summary& summary, const std::string& run_dir) {
  const std::string text =
      console::summary_table(summary) + console::learned_line(summary.learned) + "run folder: " + run_dir + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// The rank from the rendezvous to its end.
ExitCode run_in(const Rendezvous& rendezvous, RankOptions options, const plugin::Registry& registry) {
  const launch::World& world = options.world;
  const auto patience = config::milliseconds(options.loaded.experiment.launch.timeout);
  if (!find_common_resume(options.loaded, world, rendezvous.store.get(), patience)) return ExitCode::ok;
  const std::vector<torch::Device> devices = choose_devices(options.loaded, world);
  const bool prepared = options.prepared != nullptr;
  Assembly assembly = prepared ? std::move(*options.prepared) : assemble(std::move(options.loaded), registry);
  if (assembly.data.train == nullptr) open_data(assembly);
  if (!prepared) check_training_data(assembly, world.size);
  prepare_resume(assembly, world.size, world.rank);
  standardize_data(assembly);
  place_models(assembly, devices);
  const config::Experiment& experiment = assembly.experiment();
  const int64_t threads = use_threads(experiment, world);
  Connections connections = connect(assembly, world, rendezvous);
  RunFolder folder(connections, world, options.run_dir, experiment);
  const std::string log_path = log_dir(experiment, folder.path()) + "/rank" + std::to_string(world.rank) + ".log";
  if (options.run_dir.empty()) log::also_to(log_path);  // otherwise the launcher writes it

  CollectivesFile collectives(connections.recorder, world, connections.backend ? connections.backend->name() : "",
                              folder.path(), log_path);
  record::Recorder recorder(folder.path(), world.rank);
  if (world.rank == 0) record::write_environment(folder.path(), record::collect_environment(versions(assembly)));
  const auto session = make_session(assembly, connections, world, folder, recorder);
  if (world.rank == 0) {
    log::plain(banner(assembly, *session->loaders.train, world.size, threads, folder.path()));
  }
  if (world.rank == 0 && assembly.resume) log::info(assembly.resume->message);
  // The initial weights come from the seed, equal on all ranks; from here on random numbers differ between ranks.
  torch::manual_seed(static_cast<uint64_t>(experiment.experiment.seed + world.rank));

  const auto print_how_to_resume = [run_dir = folder.path()] {
    if (const std::string text = how_to_resume(run_dir); !text.empty()) log::always(text);
  };
  const bool prints_it = world.rank == 0 && world.job_dir.empty();  // otherwise our launcher prints it, after a failure
  record::Summary summary;
  try {
    summary = fit(*session, connections, world, folder, recorder, collectives);
  } catch (const Error&) {
    if (prints_it) print_how_to_resume();
    throw;
  }
  complete(summary, assembly, world);
  const auto report = [&] {
    recorder.summary(summary);
    if (world.rank != 0) return;
    print_results(summary, folder.path());
    if (summary.stopped == train::kInterrupted) print_how_to_resume();
  };
  if (session->agreement->stopped_by() == ExitCode::ok) {
    report();
    return ExitCode::ok;
  }
  if (connections.table != nullptr) connections.table->request_stop();
  // Many launchers end the job when the first rank has exited with such a code, so all ranks wait until the summary is
  // written.
  comm::with_heartbeat(connections.ranks, "writing its summary", report);
  return world.job_dir.empty() ? session->agreement->stopped_by() : ExitCode::ok;
}

}  // namespace

std::string torch_version() {
  return train::torch_version();
}

Error current_error() {
  return ddp::current_error();
}

Prepared prepare(const config::Loaded& loaded, const plugin::Registry& registry, std::optional<int> world) {
  torch::set_num_threads(1);
  Assembly assembly = assemble(loaded, registry);
  if (world) {
    check_training_data(assembly, *world);
    prepare_resume(assembly, *world, std::nullopt);
    assembly.resume.reset();  // a rank reads only those states that it needs
  }
  if (!assembly.dataset_plugin.path.empty()) assembly.data = {};
  return std::make_shared<Assembly>(std::move(assembly));
}

ExitCode run_rank(RankOptions options, const plugin::Registry& registry) {
  keep_freed_memory();
  const auto patience = config::milliseconds(options.loaded.experiment.launch.timeout);
  const Rendezvous rendezvous = join_rendezvous(options.world, patience);
  if (options.world.restarts > 0) options.loaded.experiment.faults.kind = "none";  // ddprun's launcher does the same
  report_crashes(options.world, rendezvous);
  ExitCode code = ExitCode::ok;
  run_linked(rendezvous, [&] { code = run_in(rendezvous, std::move(options), registry); });
  return code;
}

}  // namespace ddprun::run
