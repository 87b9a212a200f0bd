#include "tools/bench/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.hpp"
#include "base/log.hpp"
#include "comm/plugin_backend.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/host.hpp"
#include "launch/job_folder.hpp"
#include "launch/net/address.hpp"
#include "launch/rendezvous.hpp"
#include "launch/supervisor.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::comm {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Execution, algorithm, transport)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BenchmarkResult, seconds, batch, wrong, execution)

}  // namespace ddprun::comm

namespace ddprun::bench {
namespace {

using nlohmann::json;

// Runs all variants once per round. The order changes from round to round, so other load affects all variants alike.
// Ends early if `run` does not return ok.
ExitCode in_turns(const Plan& plan, const std::function<ExitCode(int64_t round, std::size_t variant)>& run) {
  for (int64_t round = 0; round < plan.request.rounds; ++round) {
    for (std::size_t turn = 0; turn < plan.variants.size(); ++turn) {
      const std::size_t variant = (turn + static_cast<std::size_t>(round)) % plan.variants.size();
      if (turn == 0)
        log::info("bench: round " + std::to_string(round + 1) + " of " + std::to_string(plan.request.rounds));
      if (const ExitCode code = run(round, variant); code != ExitCode::ok) return code;
    }
  }
  return ExitCode::ok;
}

// Joins as a rank of the variant and measures all its cases; the results are in the order of cases_of(). Collective.
std::vector<comm::BenchmarkResult> measure(const Plan& plan, const Variant& variant, int64_t round, Store& store,
                                           const launch::World& world) {
  comm::JoinOptions join;
  join.rank = world.rank;
  join.size = world.size;
  join.device = device_of(plan, world.local_rank);
  join.address = world.address;
  join.deadline = plan.benchmark.timeout;
  join.algorithm = variant.algorithm;
  join.options = variant.options;
  join.allgather = store.numbered_allgather("join", world.rank, world.size, join.deadline);
  const auto backend = comm::join(*variant.plugin.table, join);

  comm::BenchmarkOptions options = plan.benchmark;
  options.device = join.device;
  options.one_clock = world.local_size == world.size;
  options.seed = static_cast<uint64_t>(round);
  const auto gather = store.numbered_allgather("bench", world.rank, world.size, plan.benchmark.timeout);
  comm::Benchmark benchmark(*backend, gather, options, plan.sizes.back());
  return tools::each(cases_of(plan, variant), [&](const comm::BenchmarkCase& what) { return benchmark.measure(what); });
}

// Lets backends write notices (how they reach the other ranks) in round 0 only: they would be the same in each.
void note_only_once(int64_t round) {
  log::set_level(round > 0 ? log::Level::warning : log::Level::info);
}

// What run_rank() has written.
std::vector<comm::BenchmarkResult> read_results(const std::string& path) try {
  std::ifstream file(path);
  return json::parse(file);
} catch (const json::exception& error) {
  throw Error(ExitCode::failure, "cannot read the results of the ranks in " + path + ": " + error.what());
}

void add(std::vector<Row>& rows, const Variant& variant, std::vector<comm::BenchmarkResult> results) {
  auto result = results.begin();
  for (Row& row : rows) {
    if (row.variant != &variant) continue;
    if (result == results.end()) throw Error(ExitCode::failure, "bench: the ranks left fewer results than cases");
    row.rounds.push_back(std::move(*result++));
  }
}

std::string describe(const Row& row) {
  return row.variant->text() + ": " + name_of(row.what.kind) + " of " + std::to_string(row.bytes()) + " bytes " +
         (row.what.in_place ? "in place" : "out of place");
}

bool results_are_right(const std::vector<Row>& rows) {
  bool right = true;
  for (const Row& row : rows) {
    if (row.wrong() == 0) continue;
    log::error("bench: " + describe(row) + ": " + std::to_string(row.wrong()) + " wrong elements");
    right = false;
  }
  return right;
}

bool reaches(const std::vector<Row>& rows, const Plan& plan, double min_busbw) {
  bool reached = true;
  for (const Row& row : rows) {
    const double busbw = row.busbw() * 1e-9;
    if (row.what.bytes != plan.sizes.back() || busbw >= min_busbw) continue;
    log::error(fmt::format("bench: {}: busbw {:.3f} GB/s is below {:.3f}", describe(row), busbw, min_busbw));
    reached = false;
  }
  return reached;
}

// Of the process that has the results: prints them, writes the files, and checks the gates.
class Report {
 public:
  explicit Report(const Plan& plan) : plan_(plan) {
    require_folder(plan.request.json, ExitCode::usage, "--json " + plan.request.json);
    require_folder(plan.request.tune, ExitCode::usage, "--tune " + plan.request.tune);
  }

  ExitCode write(const std::vector<Row>& rows, const std::vector<std::string>& command) const {
    std::fputs(text(plan_, rows, environment_).c_str(), stdout);
    std::fflush(stdout);
    if (!plan_.request.json.empty()) replace_file(plan_.request.json, to_json(plan_, rows, environment_, command));
    if (!results_are_right(rows)) return ExitCode::gate;
    if (!plan_.request.tune.empty()) replace_file(plan_.request.tune, tuning_of(plan_, rows, environment_));
    if (plan_.request.min_busbw && !reaches(rows, plan_, *plan_.request.min_busbw)) return ExitCode::gate;
    return ExitCode::ok;
  }

 private:
  const Plan& plan_;
  const record::Environment environment_ = environment_of(plan_);
};

}  // namespace

ExitCode run(const Plan& plan, const std::vector<std::string>& command) {
  const Report report(plan);
  const launch::JobFolder folder;
  std::vector<Row> rows = rows_of(plan);
  // The ranks are new processes, so nothing runs in them but the measurement.
  const ExitCode code = in_turns(plan, [&](int64_t round, std::size_t variant) {
    const std::string results = folder.path() + "/results";
    launch::Job job;
    job.command = command;
    job.command.insert(job.command.end(), {"--task", std::to_string(round), std::to_string(variant), results});
    job.nproc = plan.variants[variant].ranks;
    const ExitCode ended = launch::supervise(job);
    if (ended == ExitCode::ok) {
      add(rows, plan.variants[variant], read_results(results));
    } else {
      log::error("bench: ended in round " + std::to_string(round + 1) + ": " + plan.variants[variant].text());
    }
    return ended;
  });
  return code == ExitCode::ok ? report.write(rows, command) : code;
}

ExitCode run_as_rank(const Plan& plan, const std::vector<std::string>& command, Store& store,
                     const launch::World& world) {
  const bool reports = world.rank == 0;
  if (!reports) log::set_level(log::Level::error);
  const auto report = reports ? std::make_unique<Report>(plan) : nullptr;
  std::vector<Row> rows = rows_of(plan);
  in_turns(plan, [&](int64_t round, std::size_t variant) {
    const auto own = launch::prefixed_store(store, std::to_string(round) + "/" + std::to_string(variant) + "/");
    try {
      if (reports) note_only_once(round);
      auto results = measure(plan, plan.variants[variant], round, *own, world);
      if (reports) note_only_once(0);
      if (reports) add(rows, plan.variants[variant], std::move(results));
    } catch (const Error& error) {
      throw Error(error.code(), "bench: " + plan.variants[variant].text() + ": " + error.what());
    }
    return ExitCode::ok;
  });
  // Collective too, so that rank 0's store stays until all have ended.
  const ExitCode code = reports ? report->write(rows, command) : ExitCode::ok;
  const auto codes =
      store.allgather("code", world.rank, world.size, std::to_string(static_cast<int>(code)), plan.benchmark.timeout);
  const auto common = static_cast<ExitCode>(std::stoi(codes[0]));
  // The launchers of other hosts print what a rank reports.
  if (world.is_own() && common != ExitCode::ok) throw Error(common, "bench: rank 0 has printed what is wrong");
  return common;
}

void run_rank(const Plan& plan, const Task& task, const launch::World& world) {
  const auto& [round, variant, path] = task;
  note_only_once(round);
  const auto store = launch::folder_store(world.job_dir);  // a world of one needs a store too
  const auto results = measure(plan, plan.variants[variant], round, *store, world);
  if (world.rank == 0) replace_file(path, json(results).dump());
}

std::vector<HostRanks> compare_plans(const Plan& plan, Store& store, const launch::World& world) {
  std::string host = host_identity();
  if (host.empty()) host = "rank " + std::to_string(world.rank);
  const json own = {{"host", host}, {"name", launch::host_name()}, {"plan", to_text(plan)}};
  const auto texts = store.allgather("plan", world.rank, world.size, own.dump(), plan.benchmark.timeout);
  const std::string first = json::parse(texts[0]).at("plan");
  std::vector<HostRanks> hosts;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const json one = json::parse(texts[rank]);
    if (one.at("plan") != first) {
      throw Error(ExitCode::rendezvous, "bench: rank " + std::to_string(rank) + " on " +
                                            one.at("name").get<std::string>() + " would measure \"" +
                                            one.at("plan").get<std::string>() + "\", and rank 0 \"" + first +
                                            "\": give the same arguments and the same version on all hosts");
    }
    auto place = std::ranges::find(hosts, one.at("host").get<std::string>(), &HostRanks::identity);
    if (place == hosts.end()) place = hosts.insert(place, {one.at("name"), {}, one.at("host")});
    place->ranks.push_back(static_cast<int>(rank));
  }
  return hosts;
}

}  // namespace ddprun::bench
