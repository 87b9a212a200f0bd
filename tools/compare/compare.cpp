#include "tools/compare/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/file.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "cli/config/experiment.hpp"
#include "tools/compare/comparison.hpp"
#include "tools/compare/output.hpp"
#include "tools/compare/program.hpp"
#include "tools/compare/runner.hpp"
#include "tools/compare/variant.hpp"
#include "tools/lib/run.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::compare {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ExitCode::usage, "compare: " + what);
}

bool reads_earlier_runs(const Request& request) {
  const auto is_folder = [](const std::string& input) { return std::filesystem::is_directory(input); };
  return !request.runs.empty() || (!request.inputs.empty() && std::ranges::all_of(request.inputs, is_folder));
}

void check_numbers(const Request& request) {
  if (request.repeats < 1) refuse("--repeats " + std::to_string(request.repeats) + ": expected at least 1");
  if (request.precision && request.max_repeats < request.repeats) {
    refuse("--max-repeats " + std::to_string(request.max_repeats) + " is below --repeats " +
           std::to_string(request.repeats));
  }
  if (request.warmup_steps < 0) refuse("--warmup-steps: expected at least 0");
  if (request.parity_steps < 0) refuse("--parity-steps: expected at least 0");
}

// The request must name what is compared in exactly one way.
void check_sources(const Request& request) {
  const int sources = !request.inputs.empty() + !request.config.empty() + !request.runs.empty() +
                      !request.program.empty() + !request.commands.empty();
  if (sources != 1) {
    refuse(
        "expected two or more configs, or --config FILE with --vary KEY=VALUE,VALUE, or two or more run folders, or "
        "--vary KEY=VALUE,VALUE -- PROGRAM");
  }
  const bool varies = !request.vary.empty(), changes = !request.change.empty();
  const bool can_vary = !request.config.empty() || !request.program.empty();
  if (!request.config.empty() && !varies && !changes) refuse("--config: nothing varies; add --vary KEY=VALUE,VALUE");
  if (!can_vary && (varies || changes)) {
    refuse(std::string(varies ? "--vary" : "--change") +
           " needs one experiment (FILE, or --config FILE), or one program (-- PROGRAM)");
  }
  if (!reads_earlier_runs(request)) return;
  if (request.twin) refuse("--aa needs new runs; it does not work with earlier runs");
  if (request.precision) refuse("--precision needs new runs; it does not work with earlier runs");
  if (!request.overrides.empty()) refuse("--set needs new runs; it does not work with earlier runs");
}

// `ranks`: as for config::load.
std::vector<Variant> variants_of(const Request& request, std::optional<int64_t> ranks) {
  const bool varies = request.change.empty();
  const auto own = varies ? grid_of(request.vary) : std::vector<std::vector<std::string>>{{}, request.change};
  const std::string option = varies ? "--vary" : "--change";
  const std::vector<Variant> variants =
      request.has_programs()   ? variants_of_programs(request, own, option)
      : request.config.empty() ? variants_of_files(request.inputs, request.overrides, ranks)
                               : variants_of_overrides(request.config, own, request.overrides, ranks, option);
  if (variants.size() < 2 && !request.twin)
    refuse("there is one variant; give a second, or --aa to compare it with itself");
  return variants;
}

std::vector<Member> members_of(const std::vector<Variant>& variants, bool twin) {
  std::vector<Member> members;
  for (const Variant& variant : variants) members.emplace_back().variant = variant;
  if (!twin) return members;
  Member& second = *members.insert(members.begin() + 1, members.front());
  second.variant.name += " (twin)";
  second.twin = true;
  return members;
}

std::vector<Gate> gates_of(const Request& request, const std::vector<Member>& members) {
  return tools::each(request.gates, [&](const std::string& gate) { return parse_gate(gate, names_of(members)); });
}

ExitCode report_result(const Comparison& comparison, bool has_page, const std::string& folder) {
  // First of all: a disk may be full.
  const std::string out = text(comparison) + "\ncomparison folder: " + folder + "\n";
  std::fwrite(out.data(), 1, out.size(), stdout);
  std::fflush(stdout);
  replace_file(folder + "/compare.json", to_json(comparison));
  if (has_page) report::write_page(folder + "/report.html", page_of(comparison));
  ExitCode code = ExitCode::ok;
  for (const GateResult& result : comparison.gates) {
    if (result.held) continue;
    log::error("compare: " + text(comparison, result));
    code = ExitCode::gate;
  }
  return code;
}

ExitCode compare_earlier(const Request& request) {
  if (tools::Job::find(request.nodes) != nullptr) {
    refuse(
        "earlier runs are compared by one process: leave out --nnodes, and start it without srun, mpirun or "
        "torchrun");
  }
  const bool has_page = can_draw();
  Comparison comparison{.interleaved = false, .warmup_steps = request.warmup_steps, .seed = request.seed};
  comparison.members = request.runs.empty() ? members_of_folders(request.inputs, request.warmup_steps)
                                            : members_of_groups(request.runs, request.warmup_steps);
  check_fairness(comparison, request.allow_different);
  const std::vector<Gate> gates = gates_of(request, comparison.members);
  comparison.environment = tools::read_environment(comparison.members.front().dirs.front());
  judge(comparison, gates);
  const config::Experiment& experiment = comparison.members.front().variant.loaded.experiment;
  return report_result(comparison, has_page, new_folder(request.running, experiment, "compare"));
}

// What all processes of a comparison must have in common.
std::string identity_of(const Request& request, const std::vector<Variant>& variants) {
  std::string text = fmt::format(
      "ddprun = {}\n--set = {}\n--gate = {}\n--repeats = {}\n--precision = {}\n--max-repeats = {}\n"
      "--warmup-steps = {}\n--aa = {}\n--parity-steps = {}\n--output = {}\n--timeout = {}\n",
      version(), fmt::join(request.overrides, " --set "), fmt::join(request.gates, " --gate "), request.repeats,
      request.precision.value_or(0), request.max_repeats, request.warmup_steps, request.twin, request.parity_steps,
      request.running.output, request.running.timeout);
  for (const Variant& variant : variants) {
    text += fmt::format("variant = {}\n{}", variant.name, config::shared_toml(variant.loaded.experiment));
  }
  return text;
}

ExitCode compare_new(const Request& request, const std::vector<Variant>& variants, tools::Job* job) {
  const bool has_page = can_draw();
  Comparison comparison{.warmup_steps = request.warmup_steps, .seed = request.seed};
  comparison.members = members_of(variants, request.twin);
  check_fairness(comparison, request.allow_different);
  const std::vector<Gate> gates = gates_of(request, comparison.members);
  Runner runner(request.running, variants.front(), job);
  if (!request.has_programs()) runner.validate(variants);
  measure(runner, request, comparison);
  if (!request.has_programs() && request.parity_steps > 0) measure_parity(runner, request, comparison);
  judge(comparison, gates);
  return report_result(comparison, has_page, runner.folder());
}

// The number of ranks, over all hosts, becomes launch.nproc of the variants of ddp.
void meet(tools::Job& job, const Request& request, std::vector<Variant>& variants) {
  const auto& launch = variants.front().loaded.experiment.launch;
  const auto ranks = tools::each(variants, [&](const Variant& variant) {
    return request.nodes.nproc ? *request.nodes.nproc : ranks_of(variant.loaded.experiment);
  });
  const auto counts = job.meet({.insecure = launch.insecure,
                                .timeout = config::milliseconds(launch.timeout),
                                .identity = identity_of(request, variants),
                                .differ = "do not make the same comparison",
                                .advice = "start all with the same arguments, configs and version",
                                .counts = ranks});
  for (std::size_t i = 0; i < variants.size(); ++i) {
    config::Experiment& experiment = variants[i].loaded.experiment;
    if (experiment.strategy.kind != "ddp") continue;
    experiment.launch.nproc = 0;
    for (const auto& of_process : counts) experiment.launch.nproc += of_process[i];
  }
}

// The request with the node options that are keys of the config. With several nodes, the launcher of each gets its own
// --nproc-per-node.
Request with_node_options(Request request) {
  const auto set = [&](const char* key, std::optional<int> value) {
    if (value) request.overrides.push_back(std::string(key) + "=" + std::to_string(*value));
  };
  if (request.nodes.nnodes.value_or(1) == 1) set("launch.nproc", request.nodes.nproc);
  set("launch.max_restarts", request.nodes.max_restarts);
  return request;
}

ExitCode compare_new(const Request& given) {
  if (given.has_programs()) return compare_new(given, variants_of(given, std::nullopt), nullptr);
  const Request request = with_node_options(given);
  const std::unique_ptr<tools::Job> job = tools::Job::find(request.nodes);
  if (job == nullptr) return compare_new(request, variants_of(request, std::nullopt), nullptr);
  std::vector<Variant> variants = variants_of(request, job->ranks());
  meet(*job, request, variants);
  if (job->leads()) return job->lead([&] { return compare_new(request, variants, job.get()); });
  if (request.twin) variants.push_back(members_of(variants, true)[1].variant);
  return follow(*job, request.running, variants);
}

}  // namespace

double parse_share(const std::string& option, const std::string& text) {
  const bool percent = text.ends_with('%');
  const auto number = parse_number<double>(percent ? text.substr(0, text.size() - 1) : text);
  const double share = number.value_or(0) / (percent ? 100 : 1);
  if (!(share > 0) || !(share < 1)) {
    throw Error(ExitCode::usage, option + " " + text + ": expected a fraction between 0 and 1, such as 2% or 0.02");
  }
  return share;
}

ExitCode run(const Request& request) {
  check_numbers(request);
  check_sources(request);
  return reads_earlier_runs(request) ? compare_earlier(request) : compare_new(request);
}

}  // namespace ddprun::compare
