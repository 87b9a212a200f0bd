#include "tools/compare/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/log.hpp"
#include "cli/config/text.hpp"
#include "cli/console/units.hpp"
#include "record/run_dir.hpp"
#include "tools/compare/agents.hpp"
#include "tools/compare/other_cpu.hpp"

namespace ddprun::compare {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

[[noreturn]] void stop(const ProcessEnd& end, const std::string& label, const std::string& folder) {
  const bool interrupted = end.ending == Ending::interrupted;
  throw Error(
      interrupted ? ExitCode::interrupted : ExitCode::terminated,
      fmt::format("{} in {}; the runs so far are in {}", interrupted ? "interrupted" : "terminated", label, folder));
}

std::string cause_of(const RunEnd& end) {
  return end.cause.empty() ? cause_of(end.process, end.log) : end.cause;
}

}  // namespace

std::string new_folder(const Running& running, const config::Experiment& experiment, const std::string& kind) {
  if (!running.output.empty()) return record::make_run_dir(running.output, kind, "--output");
  return record::make_run_dir(experiment.experiment.output, kind);
}

Runner::Runner(const Running& running, const std::string& kind, const Variant& first, Agents* agents)
    : running_(running), agents_(agents) {
  if (running.program.empty()) {
    throw Error(ExitCode::failure,
                kind + ": needs ddprun, which is neither in the folder of ddprun-" + kind + " nor on PATH");
  }
  folder_ = new_folder(running, first.loaded.experiment, kind);
  for (const char* part : {"runs", "logs"}) fs::create_directories(fs::path(folder_) / part);
}

void Runner::validate(const std::vector<Variant>& variants) {
  for (const Variant& variant : variants) {
    std::vector<std::string> arguments = {"validate", variant.file};
    const config::Experiment& experiment = variant.loaded.experiment;
    if (agents_ != nullptr && experiment.strategy.kind == "ddp") {
      arguments.insert(arguments.end(), {"--ranks", std::to_string(ranks_of(experiment))});
    }
    for (const std::string& override_ : variant.overrides) arguments.insert(arguments.end(), {"--set", override_});
    const std::string log = folder_ + "/logs/validate-" + folder_name(variant.name) + ".log";
    const RunEnd end{run_process(plan_of(running_, arguments, log)), "", log, ""};
    const bool asked = end.process.ending == Ending::interrupted || end.process.ending == Ending::terminated;
    if (asked) stop(end.process, "the check of " + variant.name, folder_);
    if (end.process.code != 0) throw Error(code_of(end.process), as_typed(variant, cause_of(end)));
  }
}

RunEnd Runner::run(const Variant& variant, const std::string& label, const std::vector<std::string>& more_overrides,
                   const EndEarly& end_early) {
  Leg leg{variant.name, variant.overrides, folder_, fmt::format("{:03}-{}", done_ + 1, folder_name(variant.name))};
  leg.overrides.push_back("experiment.name=" + config::quoted(folder_name(variant.name)));
  leg.overrides.push_back("experiment.output=" + config::quoted(folder_ + "/runs"));
  leg.overrides.insert(leg.overrides.end(), more_overrides.begin(), more_overrides.end());

  RunEnd end;
  end.log = leg.log_path("");
  ProcessPlan plan = plan_of(running_, leg.arguments(variant.file), end.log);
  const bool together = agents_ != nullptr && variant.loaded.experiment.strategy.kind == "ddp";
  if (together) agents_->begin(leg, plan);
  if (running_.timeout > 0) plan.timeout = std::chrono::milliseconds(static_cast<int64_t>(running_.timeout * 1000));
  start_ = Clock::now();
  plan.end_early = [&] {
    draw(label);
    if (end.dir.empty()) end.dir = new_run_dir();
    return (together && agents_->failed()) || (end_early && end_early(end.dir));
  };
  const CpuMeter meter;
  end.process = run_process(plan);
  std::vector<CpuUse> parts = {meter.use()};
  bar_.clear();
  if (together) agents_->collect(end, parts);
  end.other_cpu = other_share(parts);
  if (end.dir.empty()) end.dir = new_run_dir();
  if (!end.dir.empty()) seen_.push_back(end.dir);
  ++done_;
  seconds_ += since(start_);
  if (end.process.ending == Ending::interrupted || end.process.ending == Ending::terminated) {
    stop(end.process, label, folder_);
  }
  return end;
}

RunEnd Runner::must_run(const Variant& variant, const std::string& label,
                        const std::vector<std::string>& more_overrides) {
  RunEnd end = run(variant, label, more_overrides);
  if (end.process.ending == Ending::exited && end.process.code == 0 && !end.dir.empty()) return end;
  throw Error(code_of(end.process),
              fmt::format("{}: {}; its log: {}", label, as_typed(variant, cause_of(end)), end.log));
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

ExitCode code_of(const ProcessEnd& end) {
  return end.code >= 1 && end.code <= 6 ? static_cast<ExitCode>(end.code) : ExitCode::failure;
}

std::string cause_of(const ProcessEnd& end, const std::string& log) {
  if (end.ending == Ending::timed_out) return "it took longer than --timeout";
  const std::string last = last_line_of(log);
  return last.empty() ? fmt::format("exit code {}", end.code) : last;
}

std::string last_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  return last;
}

}  // namespace ddprun::compare
