#include "tools/tune/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "base/file.hpp"
#include "base/text.hpp"
#include "cli/config/experiment.hpp"
#include "tools/compare/variant.hpp"

namespace ddprun::tune {
namespace {

using Arguments = std::vector<std::string>;

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

Verified verify(const Request& request, const Result& result, Session& session) {
  announce(request, "a comparison of the config with and without these lines");
  const std::string output = result.folder + "/compare";
  Arguments arguments = {"compare",        Session::kExperiment,
                         "--set",          "train.steps=" + std::to_string(result.steps),
                         "--repeats",      std::to_string(request.rounds),
                         "--output",       output,
                         "--parity-steps", "0"};
  for (const Change& change : result.changes()) {
    arguments.insert(arguments.end(), {"--change", change.override_text()});
  }
  session.run(result.folder, "compare", arguments);
  return read_comparison(output);
}

void lead(const Request& request, const config::Experiment& experiment, Session& session, const Arguments& command) {
  const tools::CpuMeter meter;
  Result result = measure(request, experiment, session);
  result.other_cpu = tools::other_share({meter.use()});
  result.chosen = choose(result.basis, result.own);
  print(about_choice(result));
  if (!result.changes().empty()) result.verified = verify(request, result, session);
  print(about_verdict(result));
  if (!request.json.empty()) replace_file(request.json, to_json(result, command));
  print("tune folder: " + result.folder + "\n");
}

// Of one host, also launch.nproc.
Request with_node_options(Request request) {
  if (request.nodes.nnodes.value_or(1) == 1 && request.nodes.nproc) {
    request.overrides.push_back("launch.nproc=" + std::to_string(*request.nodes.nproc));
  }
  return request;
}

// Refuses an experiment whose gradients cannot be tuned, and a request that does not fit it.
void check(const Request& request, const config::Loaded& loaded) {
  const config::Experiment& experiment = loaded.experiment;
  const auto refuse = [&](const char* key, const std::string& what) {
    throw Error(ExitCode::usage, config::error(loaded.sources, key, what));
  };
  const auto& strategy = experiment.strategy;
  if (strategy.kind != "ddp") refuse("strategy.kind", "sends no gradients that tune could time; use \"ddp\"");
  if (strategy.zero != 0) refuse("strategy.zero", "sends parameters too, which tune does not predict; use 0");
  if (experiment.launch.device != "cpu") {
    refuse("launch.device", "a trace does not say when buckets on a GPU are full; tune works with \"cpu\"");
  }
  const auto own = std::ranges::count(request.backends, experiment.comm.backend);
  if (own < std::ssize(request.backends) && !experiment.comm.options.empty()) {
    throw Error(ExitCode::usage, "--backend " + fmt::format("{}", fmt::join(request.backends, ",")) +
                                     ": comm.options are those of " + experiment.comm.backend +
                                     "; leave out one of the two");
  }
  require_folder(request.json, ExitCode::usage, request.json);
}

}  // namespace

ExitCode run(const Request& given, const std::vector<std::string>& command) {
  const Request request = with_node_options(given);
  const auto world = console::discover(request.nodes, std::nullopt);
  if (world && world->size > 1) {
    throw Error(ExitCode::usage, "tune: " + world->launcher + " has started " + std::to_string(world->size) +
                                     " ranks; start it once on each host, with --nnodes for several");
  }
  const std::string nproc = std::to_string(request.nodes.nproc.value_or(0));
  const config::Typed typed{{"launch.nproc=" + nproc, "--nproc-per-node " + nproc}};  // of with_node_options()
  // With several hosts, launch.nproc does not give the ranks.
  const auto ranks_known = request.nodes.nnodes.value_or(1) == 1 ? std::nullopt : std::optional<int64_t>(0);
  const config::Loaded loaded = config::load(request.config, request.overrides, ranks_known, typed);
  check(request, loaded);
  const int64_t ranks = request.nodes.nproc ? *request.nodes.nproc : compare::ranks_of(loaded.experiment);
  const auto timeout = config::milliseconds(loaded.experiment.launch.timeout);
  const std::string identity =
      fmt::format("ddprun = {}\n--steps = {}\n{}", version(), request.steps, config::shared_toml(loaded.experiment));
  Session session(request, loaded.experiment, ranks, identity, timeout);
  if (session.ranks() == 1) throw Error(ExitCode::usage, "tune: one rank sends nothing; give --nproc N");
  return session.lead([&] { lead(request, loaded.experiment, session, command); });
}

}  // namespace ddprun::tune
