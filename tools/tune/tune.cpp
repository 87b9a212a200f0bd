#include "tools/tune/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/file.hpp"
#include "base/version.hpp"
#include "tools/compare/variant.hpp"
#include "tools/tune/result.hpp"
#include "tools/tune/session.hpp"

namespace ddprun::tune {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

// For config::load(): launch.nproc does not give the ranks of several hosts.
std::optional<int64_t> ranks_known(int hosts) {
  return hosts == 1 ? std::nullopt : std::optional<int64_t>(0);
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

Verified verify(const Request& request, const Result& result, int64_t steps, Session& session) {
  announce(request, "a comparison of the config with and without these lines");
  const std::string output = result.folder + "/compare";
  Arguments arguments = {"compare",        Session::kExperiment,
                         "--set",          "train.steps=" + std::to_string(steps),
                         "--repeats",      std::to_string(request.rounds),
                         "--output",       output,
                         "--parity-steps", "0"};
  for (const Change& change : result.changes()) {
    arguments.insert(arguments.end(), {"--change", change.override_text()});
  }
  session.run(result.folder, "compare", arguments);
  return read_comparison(output);
}

void write(const Request& request, const Result& result) {
  if (!result.is_better()) return print(request.write + " is not written\n");
  replace_file(request.write, changed_config(request.config, request.overrides, result.changes(),
                                             ranks_known(static_cast<int>(result.hosts))));
  print(request.write + " has the config with these lines; it has every key, and no comments\n");
}

void lead(const Request& request, const config::Experiment& experiment, Session& session, const Arguments& command) {
  Result result;
  result.hosts = session.hosts();
  result.ranks = session.ranks();
  const tools::CpuMeter meter;
  Measurement measured = measure(request, experiment, session);
  result.other_cpu = tools::other_share({meter.use()});
  result.name = measured.name;
  result.folder = measured.folder;
  result.basis = std::move(measured.basis);
  result.own = settings_of(experiment);
  result.chosen = choose(result.basis, result.own);
  print(about_choice(result));
  if (!result.changes().empty()) result.verified = verify(request, result, measured.steps, session);
  print(about_verdict(result));
  if (!request.json.empty()) replace_file(request.json, to_json(result, command));
  if (!request.write.empty()) write(request, result);
  print("tune folder: " + result.folder + "\n");
}

// Of one host, also launch.nproc.
Request with_node_options(Request request) {
  if (request.nodes.nnodes.value_or(1) == 1 && request.nodes.nproc) {
    request.overrides.push_back("launch.nproc=" + std::to_string(*request.nodes.nproc));
  }
  return request;
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
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
  if (strategy.compression == "powersgd") {
    refuse("strategy.compression", "tune cannot predict it; use \"none\", \"bf16\" or \"fp16\"");
  }
  const bool others = std::any_of(request.backends.begin(), request.backends.end(),
                                  [&](const std::string& name) { return name != experiment.comm.backend; });
  if (others && !experiment.comm.options.empty()) {
    throw Error(ExitCode::usage, "--backend " + fmt::format("{}", fmt::join(request.backends, ",")) +
                                     ": comm.options are those of " + experiment.comm.backend +
                                     "; leave out one of the two");
  }
  if (!request.write.empty() && is_same_file(request.write, request.config)) {
    throw Error(ExitCode::usage,
                "--write " + request.write + ": the comments of this config would be lost; choose another file");
  }
  for (const std::string& file : {request.write, request.json}) {
    const std::string folder = missing_folder(file);
    if (!folder.empty()) throw Error(ExitCode::usage, file + ": there is no folder " + folder);
  }
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
  const config::Loaded loaded =
      config::load(request.config, request.overrides, ranks_known(request.nodes.nnodes.value_or(1)), typed);
  check(request, loaded);
  const int64_t ranks = request.nodes.nproc ? *request.nodes.nproc : compare::ranks_of(loaded.experiment);
  const auto timeout = std::chrono::milliseconds(std::llround(loaded.experiment.launch.timeout * 1000));
  const std::string identity =
      fmt::format("ddprun = {}\n--steps = {}\n{}", version(), request.steps, config::shared_toml(loaded.experiment));
  Session session(request, loaded.experiment, ranks, identity, timeout);
  if (session.ranks() == 1) throw Error(ExitCode::usage, "tune: one rank sends nothing; give --nproc N");
  return session.lead([&] { lead(request, loaded.experiment, session, command); });
}

}  // namespace ddprun::tune
