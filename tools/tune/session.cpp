#include "tools/tune/tune.hpp"

#include <fmt/format.h>

#include "cli/config/experiment.hpp"
#include "tools/compare/runner.hpp"
#include "tools/compare/variant.hpp"

namespace ddprun::tune {
namespace {

// The overrides of the request for short runs. Their length is an argument of each child.
std::vector<std::string> overrides_of_runs(const Request& request) {
  std::vector<std::string> overrides = compare::without_length(request.overrides);
  // What has no part in the time of a step, but would need more steps or a file.
  for (const char* off : {"train.warmup=0", "train.evaluate=false", "train.early_stop=\"\"", "checkpoint.best=\"\"",
                          "checkpoint.resume=\"\"", "log.parity_steps=0"}) {
    overrides.push_back(off);
  }
  return overrides;
}

}  // namespace

Session::Session(const Request& request, const config::Experiment& experiment, int64_t ranks,
                 const std::string& identity, std::chrono::milliseconds timeout)
    : request_(request), experiment_(experiment), all_ranks_(ranks) {
  console::NodeOptions nodes = request.nodes;
  nodes.nproc = static_cast<int>(ranks);
  job_ = tools::Job::find(nodes);
  if (!job_) {
    console::nodes_of(nodes, experiment.launch.insecure, timeout);  // refuses options that do not fit together
    return;
  }
  const auto counts = job_->meet({.insecure = experiment.launch.insecure,
                                  .timeout = timeout,
                                  .identity = identity,
                                  .differ = "do not tune the same experiment",
                                  .advice = "start all with the same arguments, config and version",
                                  .counts = {ranks}});
  all_ranks_ = 0;
  for (const auto& of_host : counts) all_ranks_ += of_host[0];
}

tools::ProcessPlan Session::plan_of(const std::vector<std::string>& arguments, const std::string& log) const {
  std::vector<std::string> all;
  const auto add = [&](const char* option, const std::string& value) { all.insert(all.end(), {option, value}); };
  for (const std::string& argument : arguments) {
    if (argument == kExperiment) {
      add("--config", request_.config);
      for (const std::string& override_ : overrides_of_runs(request_)) add("--set", override_);
    } else if (argument == kOptions) {
      for (const auto& [key, value] : experiment_.comm.options) add("--option", key + "=" + value);
    } else {
      all.push_back(argument);
    }
  }
  tools::ProcessPlan plan = compare::plan_of(request_.running, all, log);
  if (request_.running.timeout > 0) plan.timeout = config::milliseconds(request_.running.timeout);
  return plan;
}

void Session::run(const std::string& folder, const std::string& name, const std::vector<std::string>& arguments) {
  const tools::ProcessPlan plan = plan_of(arguments, folder + "/logs/" + name + ".log");
  const tools::ChildEnd end = job_ ? job_->run({{"arguments", arguments}}, plan) : tools::run_process(plan);
  end.stop_if_asked(name);
  if (!end.is_good()) throw Error(end.code(), fmt::format("{}: {}; its log: {}", name, end.why(), end.log));
}

ExitCode Session::lead(const std::function<void()>& work) {
  const auto all = [&] {
    work();
    return ExitCode::ok;
  };
  if (!job_) return all();
  if (job_->leads()) return job_->lead(all);
  return job_->follow([this](const nlohmann::json& what) { return plan_of(what.at("arguments"), ""); });
}

}  // namespace ddprun::tune
