#include "tools/compare/program.hpp"

#include <algorithm>
#include <boost/algorithm/string/erase.hpp>
#include <boost/algorithm/string/join.hpp>
#include <boost/algorithm/string/replace.hpp>
#include <cstdlib>
#include <filesystem>

#include "cli/console/program.hpp"
#include "ddprun/error.hpp"
#include "record/environment.hpp"
#include "record/run_dir.hpp"
#include "tools/lib/job.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::compare {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ExitCode::usage, "compare: " + what);
}

// Gives the program "key=value", of --vary or --change.
void apply(const std::string& option, const std::string& override_, Variant& variant) {
  const std::size_t equals = override_.find('=');
  const std::string key = override_.substr(0, equals);
  std::string value = override_.substr(equals + 1);
  const bool is_quoted = value.size() > 1 && value.front() == value.back() && (value[0] == '"' || value[0] == '\'');
  if (is_quoted) value = value.substr(1, value.size() - 2);
  if (key == "backend") {
    variant.environment.push_back("DDPRUN_TORCH_BACKEND=" + value);
    // Of C++ programs, which have ddprun's own names of backends.
    variant.environment.push_back("DDPRUN_BACKEND=" + boost::algorithm::erase_first_copy(value, "ddprun_"));
  } else if (key.starts_with("env.")) {
    variant.environment.push_back(key.substr(4) + "=" + value);
  } else {
    const Words before = variant.command;
    for (std::string& word : variant.command) boost::algorithm::replace_all(word, "{" + key + "}", value);
    if (variant.command != before) return;
    refuse(option + " " + override_ + ": expected backend or env.NAME as its key, or {" + key +
           "} in an argument of the program");
  }
}

}  // namespace

std::vector<Variant> variants_of_programs(const Request& request, const std::vector<Words>& own,
                                          const std::string& option) {
  if (!request.overrides.empty()) refuse("--set is for configs; a program gets its settings with --vary or --change");
  const console::NodeOptions& nodes = request.nodes;
  if (nodes.start_ranks() || nodes.nproc || nodes.max_restarts || tools::Job::find(nodes) != nullptr) {
    refuse(
        "programs are compared by one process on one host: give --nproc-per-node to the program's launcher, and "
        "start this command without srun, mpirun or torchrun");
  }
  Variant common;
  common.environment = {"DDPRUN_RECORD_PARITY=" + std::to_string(request.parity_steps)};
  std::vector<Variant> variants;
  if (!request.commands.empty()) {
    for (const std::string& command : request.commands) {
      const std::size_t equals = command.find('=');
      if (equals == 0 || equals == std::string::npos) refuse("--command " + command + ": expected NAME=PROGRAM");
      variants.push_back(common);
      variants.back().name = command.substr(0, equals);
      variants.back().command = {"/bin/sh", "-c", command.substr(equals + 1)};
    }
    if (!all_differ(tools::each(variants, &Variant::name))) refuse("--command: a name is given twice");
    return variants;
  }
  const std::string& name = request.program.front();
  if (name.find('/') == std::string::npos && console::find_program(name).empty()) refuse(name + ": not on PATH");
  const Words names = names_of_overrides(own, "the program");
  for (std::size_t i = 0; i < own.size(); ++i) {
    Variant& variant = variants.emplace_back(common);
    variant.name = names[i];
    variant.overrides = own[i];
    variant.command = request.program;
    for (const std::string& override_ : own[i]) apply(option, override_, variant);
  }
  return variants;
}

tools::ProcessPlan plan_of_program(const Variant& variant, const std::string& dir) {
  const fs::path python = fs::path(console::this_program()).parent_path().parent_path() / "lib/ddprun/python";
  const fs::path inject = python / "ddprun/inject";
  if (!fs::exists(inject / "sitecustomize.py")) {
    throw Error(ExitCode::failure, "compare: cannot record a program: " + inject.string() + " has no sitecustomize.py");
  }
  const char* const known = std::getenv("PYTHONPATH");
  tools::ProcessPlan plan{.command = variant.command, .environment = variant.environment, .ends_orphans = true};
  plan.environment.push_back("PYTHONPATH=" + inject.string() + ":" + python.string() +
                             (known == nullptr || *known == 0 ? "" : std::string(":") + known));
  plan.environment.push_back("DDPRUN_RECORD=" + fs::absolute(dir).string());
  record::write_environment(dir,
                            record::collect_environment({{"program", boost::algorithm::join(variant.command, " ")}}));
  return plan;
}

std::string why_not_recorded(const std::string& dir, const tools::ChildEnd& end) {
  if (!end.is_good()) {
    const std::string cause = tools::last_line_of(record::file_in(dir, "failure.txt"));
    return cause.empty() || end.process.ending != tools::Ending::exited ? end.why() : cause;
  }
  if (fs::exists(record::file_in(dir, "summary.json"))) return "";
  return fs::exists(record::file_in(dir, "steps-rank0.jsonl"))
             ? "its record has no end, because rank 0 ended by _exit, or a signal"
             : "nothing was recorded: none of its Python processes made a step with an optimizer of Torch, and no C++ "
               "process one with ddprun's DistributedDataParallel";
}

}  // namespace ddprun::compare
