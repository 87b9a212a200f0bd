#include <cstdio>
#include <cstdlib>

#include "base/log.hpp"
#include "cli/console/console.hpp"
#include "cli/run/between_hosts.hpp"
#include "cli/run/devices.hpp"
#include "cli/run/failures.hpp"
#include "cli/run/resume.hpp"
#include "cli/run/run.hpp"
#include "cli/run/session.hpp"
#include "ddp/share.hpp"
#include "launch/failure.hpp"
#include "launch/rendezvous.hpp"
#include "record/environment.hpp"
#include "record/trace.hpp"
#include "train/device/cuda.hpp"

namespace ddprun::run {
namespace {

using namespace std::chrono_literals;

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

// What a rank has from its start to its end, also if others die.
struct Rank {
  const launch::World& place;  // as the job began: the launcher and the run folder know the rank by this number
  launch::World world;         // among the ranks that train now
  Assembly& assembly;
  Connections& connections;
  RunFolder& folder;
  record::Recorder& recorder;
  const std::string& log_path;
  int64_t threads;
  elastic::Survivor* survivor;  // of a run that goes on after deaths; otherwise null
  Rendezvous members;           // after a change: of the ranks that train now
};

void print_how_to_resume(const Rank& rank) {
  if (const std::string text = how_to_resume(rank.folder.path()); !text.empty()) log::always(text);
}

// Reports to our own launcher, or to the other ranks, immediately, while model, data and backend still exist: stack
// unwinding takes time, and the peers' later failures must not arrive first. Without our launcher, the error itself
// names step and phase.
[[noreturn]] void fail(const Rank& rank, const LauncherLink& link, CollectivesFile& collectives, const Error& error) {
  const launch::World& world = rank.place;
  const ExitCode code = error.code();
  const std::string what = error.what();
  launch::report_failure(world.job_dir, world.rank, code, what);
  collectives.write("this rank failed: " + what, code);
  if (world.is_own()) throw error;  // our launcher prints how to resume
  std::optional<Error> cause;
  if (rank.connections.link != nullptr) cause = rank.connections.link->failed(error);
  if (world.rank == 0) print_how_to_resume(rank);
  if (cause) throw Error(*cause);
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

record::Summary fit(Rank& rank, Session& session) {
  record::Summary summary = session.trainer->fit();
  if (rank.survivor != nullptr) summary.changes = rank.survivor->changes();
  rank.recorder.flush();
  if (session.tracer != nullptr) {
    const comm::Group& ranks = rank.connections.ranks;
    const record::RankTrace trace = common_trace(*session.tracer, ranks, rank.world);
    const auto events = ranks.gather(record::events_of(trace, rank.world.rank));
    if (rank.world.rank == 0) record::write_trace(rank.folder.path(), events);
  }
  rank.folder.gather();
  return summary;
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

ExitCode report(Rank& rank, const Session& session, record::Summary summary) {
  complete(summary, rank.assembly, rank.world);
  const auto write = [&] {
    rank.recorder.summary(summary);
    if (rank.world.rank != 0) return;
    if (rank.survivor != nullptr) rank.survivor->end();
    print_results(summary, rank.folder.path());
    if (summary.stopped == train::kInterrupted) print_how_to_resume(rank);
  };
  const ExitCode stopped_by = session.agreement->stopped_by();
  if (stopped_by == ExitCode::ok && rank.survivor == nullptr) {
    write();
    return stopped_by;
  }
  if (stopped_by != ExitCode::ok && rank.connections.table != nullptr) rank.connections.table->request_stop();
  // Many launchers end the job when the first rank has exited with such a code, and rank 0 may die. So all ranks wait
  // until the summary is written.
  comm::with_heartbeat(rank.connections.ranks, "writing its summary", write);
  return rank.world.is_own() ? ExitCode::ok : stopped_by;
}

// Trains with the ranks that `rank` is connected to. Returns nothing if they have changed, and training goes on.
std::optional<ExitCode> train(Rank& rank) {
  Connections& connections = rank.connections;
  const bool leads = rank.world.rank == 0;
  std::jthread watch;
  if (rank.survivor != nullptr) watch = rank.survivor->members().watch([&] { connections.backend->abort(); });
  CollectivesFile collectives(connections.recorder, rank.place, connections.backend ? connections.backend->name() : "",
                              rank.folder.path(), rank.log_path);
  std::unique_ptr<Session> session;
  std::optional<record::Summary> summary;
  try {
    session = make_session(rank.assembly, connections, rank.world, rank.folder, rank.recorder, rank.survivor);
    const bool is_first = rank.members.store == nullptr;
    if (leads && is_first) {
      log::plain(banner(rank.assembly, *session->loaders.train, rank.world.size, rank.threads, rank.folder.path()));
    }
    if (leads && rank.assembly.resume) log::info(rank.assembly.resume->message);
    // The initial weights come from the seed, equal on all ranks; from here on random numbers differ between ranks.
    if (is_first)
      torch::manual_seed(static_cast<uint64_t>(rank.assembly.experiment().experiment.seed + rank.place.rank));
    summary = fit(rank, *session);
    if (rank.survivor != nullptr) return report(rank, *session, *summary);
  } catch (...) {
    const Error error = ddp::current_error();
    if (rank.survivor != nullptr && rank.survivor->goes_on(error, connections.backend.get())) {
      if (session) rank.survivor->keep(*session->virtual_ranks, *session->optimizer, session->parameters);
      return std::nullopt;
    }
    if (!session) throw;
    fail(rank, *session->launcher_link, collectives, error);
  }
  return report(rank, *session, *summary);
}

// After the ranks have changed: connects those that train now. Those that die meanwhile are left out. `patience`: how
// long the others may take to end what they do. False if the training has ended.
bool regroup(Rank& rank, std::chrono::milliseconds patience) {
  elastic::Survivor& survivor = *rank.survivor;
  rank.assembly.loaded.experiment.faults.kind = "none";  // as after a restart
  while (true) {
    rank.connections = {};  // before its store
    try {
      if (!survivor.meet(patience)) return false;
      const elastic::Membership& members = survivor.members();
      rank.world.rank = members.rank();
      rank.world.size = members.size();
      rank.members.store = members.store();
      launch::locate(rank.world, *rank.members.store, patience);
      rank.connections = connect(rank.assembly, rank.world, rank.members, members.changes());
      const std::jthread watch = members.watch([&] { rank.connections.backend->abort(); });
      rank.folder.meet(rank.connections, rank.world);
      survivor.catch_up(rank.assembly.model->module(), rank.connections.ranks);
      rank.recorder.lead(rank.world.rank == 0);
      rank.recorder.epoch_line(survivor.epoch());
      rank.assembly.resume = Resume{survivor.resume(rank.folder.path() + "/checkpoints"), survivor.text()};
      return true;
    } catch (...) {
      if (!survivor.goes_on(ddp::current_error(), rank.connections.backend.get())) throw;
    }
  }
}

// The rank from the rendezvous to its end.
ExitCode run_in(const Rendezvous& rendezvous, RankOptions options, const plugin::Registry& registry) {
  const launch::World& world = options.world;
  const auto patience = config::milliseconds(options.loaded.experiment.launch.timeout);
  const bool joins = elastic::Survivor::joins();
  if (joins) options.loaded.experiment.checkpoint.resume.clear();  // it gets the state from its peers
  if (!joins && !find_common_resume(options.loaded, world, rendezvous.store.get(), patience)) return ExitCode::ok;
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
  Connections connections = joins ? Connections() : connect(assembly, world, rendezvous);
  RunFolder folder(rendezvous.store.get(), world, options.run_dir, experiment, joins);
  if (!joins) folder.meet(connections, world);
  const std::string log_path = log_dir(experiment, folder.path()) + "/rank" + std::to_string(world.rank) + ".log";
  if (options.run_dir.empty()) log::also_to(log_path);  // otherwise the launcher writes it
  record::Recorder recorder(folder.path(), world.rank, joins);
  if (world.rank == 0) record::write_environment(folder.path(), record::collect_environment(versions(assembly)));
  std::optional<elastic::Survivor> survivor;
  if (options.survives) survivor.emplace(*rendezvous.store, world.rank, world.size);
  Rank rank{world, world, assembly, connections, folder, recorder, log_path, threads, survivor ? &*survivor : nullptr,
            {}};
  if (joins) {
    if (world.size > 1) require_same_experiment(assembly, *rendezvous.store);
    survivor->join(patience, *launch::folder_store(world.job_dir));
    if (!regroup(rank, 24h)) return ExitCode::ok;  // waits for the end of an evaluation
  }
  do {
    if (const std::optional<ExitCode> code = train(rank)) return *code;
  } while (regroup(rank, 10 * config::milliseconds(experiment.comm.timeout)));  // as comm::with_heartbeat
  return ExitCode::ok;
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
  const bool meets = !elastic::Survivor::joins() && (!options.survives || options.world.size > 1);
  const Rendezvous rendezvous = meets ? join_rendezvous(options.world, patience)
                                      : Rendezvous{launch::own_store(options.world, patience), nullptr};
  if (options.world.restarts > 0) options.loaded.experiment.faults.kind = "none";  // ddprun's launcher does the same
  report_crashes(options.world, rendezvous);
  ExitCode code = ExitCode::ok;
  run_linked(rendezvous, [&] { code = run_in(rendezvous, std::move(options), registry); });
  return code;
}

}  // namespace ddprun::run
