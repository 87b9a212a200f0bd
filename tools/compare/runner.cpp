#include "tools/compare/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/log.hpp"
#include "cli/config/experiment.hpp"
#include "cli/console/table.hpp"
#include "record/run_dir.hpp"
#include "tools/compare/program.hpp"
#include "tools/compare/statistics.hpp"

namespace ddprun::compare {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using nlohmann::json;
using tools::ProcessPlan;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<std::string> arguments_of(const std::string& config, const std::vector<std::string>& overrides) {
  std::vector<std::string> arguments = {"--config", config};
  for (const std::string& override_ : overrides) arguments.insert(arguments.end(), {"--set", override_});
  return arguments;
}

constexpr int64_t kParityRuns = 2;  // of each variant, to compare their bits

bool too_wide(const Comparison& comparison, double precision) {
  for (std::size_t i = 1; i < comparison.members.size(); ++i) {
    const Ratio ratio = ratio_of(comparison, i, 0);
    if (!(ratio.half_width() <= precision * ratio.value)) return true;
  }
  return false;
}

// The variant with this many steps, or with one more than its learning rate warm-up if that is longer.
Variant short_variant(Variant variant, int64_t steps) {
  steps = std::max(steps, variant.loaded.experiment.train.warmup + 1);
  variant.overrides = without_length(variant.overrides);
  variant.overrides.push_back(fmt::format("train.steps={}", steps));
  return variant;
}

}  // namespace

std::string new_folder(const Running& running, const config::Experiment& experiment, const std::string& kind) {
  if (!running.output.empty()) return record::make_run_dir(running.output, kind, "--output");
  return record::make_run_dir(experiment.experiment.output, kind);
}

Runner::Runner(const Running& running, const Variant& first, tools::Job* job) : running_(running), job_(job) {
  if (running.program.empty() && first.command.empty()) {
    throw Error(ExitCode::failure,
                "compare: needs ddprun, which is neither in the folder of ddprun-compare nor on PATH");
  }
  folder_ = new_folder(running, first.loaded.experiment, "compare");
  fs::create_directory(folder_ + "/runs");
}

void Runner::validate(const std::vector<Variant>& variants) {
  for (const Variant& variant : variants) {
    std::vector<std::string> arguments = arguments_of(variant.file, variant.overrides);
    arguments.insert(arguments.begin(), "validate");
    const config::Experiment& experiment = variant.loaded.experiment;
    if (job_ != nullptr && experiment.strategy.kind == "ddp") {
      arguments.insert(arguments.end(), {"--ranks", std::to_string(ranks_of(experiment))});
    }
    const std::string log = folder_ + "/logs/validate-" + folder_name(variant.name) + ".log";
    const tools::ChildEnd end = tools::run_process(plan_of(running_, arguments, log));
    end.stop_if_asked("the check of " + variant.name, so_far());
    if (end.process.code != 0) throw Error(end.code(), as_typed(variant, end.why()));
  }
}

RunEnd Runner::run(const Variant& variant, const std::string& label, const std::vector<std::string>& more_overrides) {
  const std::string name = fmt::format("{:03}-{}", done_ + 1, folder_name(variant.name));
  std::vector<std::string> overrides = variant.overrides;
  overrides.push_back("experiment.name=" + config::quoted(folder_name(variant.name)));
  overrides.push_back("experiment.output=" + config::quoted(folder_ + "/runs"));
  overrides.insert(overrides.end(), more_overrides.begin(), more_overrides.end());

  const bool is_program = !variant.command.empty();
  ProcessPlan plan = is_program
                         ? plan_of_program(variant, record::make_run_dir(folder_ + "/runs", folder_name(variant.name)))
                         : plan_of(running_, arguments_of(variant.file, overrides), "");
  plan.log = folder_ + "/logs/" + name + ".log";
  plan.echo = running_.verbose;
  if (running_.timeout > 0) plan.timeout = config::milliseconds(running_.timeout);
  start_ = Clock::now();
  plan.end_early = [&] {
    draw(label);
    return false;
  };
  const bool together = job_ != nullptr && variant.loaded.experiment.strategy.kind == "ddp";
  RunEnd end{together ? job_->run({{"variant", variant.name}, {"overrides", overrides}}, plan)
                      : tools::run_process(plan)};
  bar_.clear();
  end.dir = new_run_dir();
  if (!end.dir.empty()) seen_.push_back(end.dir);
  ++done_;
  seconds_ += since(start_);
  end.stop_if_asked(label, so_far());
  const bool is_good = end.is_good() && !end.dir.empty();
  std::string why = is_program ? why_not_recorded(end.dir, end) : is_good ? "" : as_typed(variant, end.why());
  if (why.empty()) return end;
  throw Error(end.code(), fmt::format("{}: {}; its log: {}", label, why, end.log));
}

void Runner::print(const std::string& line) {
  if (running_.quiet) return;
  bar_.clear();
  log::info(line);
}

void Runner::draw(const std::string& label) {
  if (running_.quiet || running_.verbose) return;
  std::string left;
  if (done_ > 0 && expected_ > done_) {
    const double each = seconds_ / static_cast<double>(done_);
    const double seconds = std::max(0.0, each * static_cast<double>(expected_ - done_) - since(start_));
    left = "  " + console::human_time(seconds) + " left";
  }
  bar_.show(label + "  ", done_, std::max(expected_, done_ + 1), left);
}

std::string Runner::new_run_dir() const {
  for (const auto& entry : fs::directory_iterator(fs::path(folder_) / "runs")) {
    const std::string path = entry.path().string();
    if (std::find(seen_.begin(), seen_.end(), path) == seen_.end()) return path;
  }
  return "";
}

ProcessPlan plan_of(const Running& running, const std::vector<std::string>& arguments, const std::string& log) {
  ProcessPlan plan;
  plan.command = {running.program};
  plan.command.insert(plan.command.end(), arguments.begin(), arguments.end());
  for (const std::string& path : running.plugin_paths) plan.command.insert(plan.command.end(), {"--plugin-path", path});
  plan.log = log;
  plan.echo = running.verbose;
  return plan;
}

ExitCode follow(tools::Job& job, const Running& running, const std::vector<Variant>& variants) {
  return job.follow([&](const json& what) {
    const std::string name = what.at("variant");
    return plan_of(running, arguments_of(std::ranges::find(variants, name, &Variant::name)->file, what.at("overrides")),
                   "");
  });
}

void measure(Runner& runner, const Request& request, Comparison& comparison) {
  std::vector<Member>& members = comparison.members;
  const auto variants = std::ssize(members) - std::ranges::count(members, true, &Member::twin);
  const int64_t most = request.precision ? std::max(request.repeats, request.max_repeats) : request.repeats;
  for (int64_t round = 0; round < most; ++round) {
    if (round >= request.repeats && !too_wide(comparison, *request.precision)) return;
    const int64_t rounds = std::max(request.repeats, round + 1);
    runner.expect(rounds * std::ssize(members) + (request.parity_steps > 0 ? kParityRuns * variants : 0));
    for (const std::size_t at : turn_order(members.size(), static_cast<std::size_t>(round))) {
      Member& member = members[at];
      const std::string label = fmt::format("round {} of {}: {}", round + 1, rounds, member.variant.name);
      const RunEnd end = runner.run(member.variant, label);
      const tools::Run run = tools::read_run(end.dir);
      if (comparison.environment.empty()) comparison.environment = run.environment;
      Variant variant = member.variant;
      if (!variant.command.empty()) variant.loaded = config::load(run.config, {});
      add_run(member, run, variant, request.warmup_steps);
      member.runs.back().other_cpu = tools::other_share(end.cpu);
      runner.print(fmt::format("{}: {} a step", label, console::human_time(member.runs.back().step)));
    }
    if (round == 0) check_fairness(comparison, request.allow_different);  // of programs this is known now
  }
}

void measure_parity(Runner& runner, const Request& request, Comparison& comparison) {
  for (Member& member : comparison.members) {
    if (member.twin) continue;
    const Variant variant = short_variant(member.variant, request.parity_steps);
    for (int64_t number = 1; number <= kParityRuns; ++number) {
      const std::string label = fmt::format("parity run {} of {}: {}", number, kParityRuns, member.variant.name);
      const std::vector<std::string> overrides = {fmt::format("log.parity_steps={}", request.parity_steps),
                                                  "train.evaluate=false"};
      const std::string dir = runner.run(variant, label, overrides).dir;
      member.parity_dirs.push_back(dir);
      member.parity_runs.push_back(tools::read_parity(dir, static_cast<int>(tools::read_summary(dir).world)));
      runner.print(label);
    }
  }
}

}  // namespace ddprun::compare
