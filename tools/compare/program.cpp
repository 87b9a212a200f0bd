#include "tools/compare/program.hpp"

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>

#include "cli/console/program.hpp"
#include "ddprun/error.hpp"
#include "record/environment.hpp"
#include "record/run_dir.hpp"
#include "tools/lib/job.hpp"

namespace ddprun::compare {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ExitCode::usage, "compare: " + what);
}

// The library of C++ programs has ddprun's own names of backends.
constexpr std::string_view kTorchPrefix = "ddprun_";

// Gives the program "key=value", of --vary or --change.
void apply(const std::string& option, const std::string& override_, Variant& variant) {
  const std::size_t equals = override_.find('=');
  const std::string key = override_.substr(0, equals);
  std::string value = override_.substr(equals + 1);
  const bool is_quoted = value.size() > 1 && value.front() == value.back() && (value[0] == '"' || value[0] == '\'');
  if (is_quoted) value = value.substr(1, value.size() - 2);
  if (key == "backend") {
    variant.environment.push_back("DDPRUN_TORCH_BACKEND=" + value);
    variant.environment.push_back("DDPRUN_BACKEND=" + value.substr(value.starts_with(kTorchPrefix) ? 7 : 0));
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

// Of the words that not all programs have, such as "a.py"; files without their folders.
Words names_of_commands(const Words& commands) {
  std::vector<Words> texts;
  for (const std::string& command : commands) {
    std::istringstream stream(command);
    texts.emplace_back(std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>());
  }
  Words names;
  for (const Words& text : texts) {
    std::string name;
    for (const std::string& word : text) {
      const auto has_it = [&](const Words& other) { return std::ranges::count(other, word) > 0; };
      if (!std::ranges::all_of(texts, has_it)) name += (name.empty() ? "" : " ") + fs::path(word).filename().string();
    }
    names.push_back(name);
  }
  const bool clear = std::ranges::count(names, "") == 0 && all_differ(names);
  return clear ? names : commands;
}

// The recording has the digests of all tensors in the first steps.
std::vector<Variant> with_parity(std::vector<Variant> variants, int64_t steps) {
  for (Variant& variant : variants) variant.environment.push_back("DDPRUN_RECORD_PARITY=" + std::to_string(steps));
  return variants;
}

void require_program(const std::string& name) {
  if (name.find('/') == std::string::npos ? !console::find_program(name).empty() : fs::exists(name)) return;
  refuse(name + ": no such program" + (name.find('/') == std::string::npos ? " on PATH" : ""));
}

}  // namespace

bool has_programs(const Request& request) {
  return !request.program.empty() || !request.commands.empty();
}

std::vector<Variant> variants_of_programs(const Request& request, const std::vector<Words>& own,
                                          const std::string& option) {
  if (!request.overrides.empty()) refuse("--set is for configs; a program gets its settings with --vary or --change");
  const console::NodeOptions& nodes = request.nodes;
  if (nodes.start_ranks() || nodes.nproc || nodes.max_restarts || tools::Job::find(nodes) != nullptr) {
    refuse(
        "programs are compared by one process on one host: give --nproc-per-node to the program's launcher, and "
        "start this command without srun, mpirun or torchrun");
  }
  std::vector<Variant> variants;
  if (!request.commands.empty()) {
    const Words names = names_of_commands(request.commands);
    if (!all_differ(names)) refuse("--command: a program is given twice; --aa compares a variant with itself");
    for (std::size_t i = 0; i < names.size(); ++i) {
      variants.emplace_back().name = names[i];
      variants.back().command = {"/bin/sh", "-c", request.commands[i]};
    }
    return with_parity(std::move(variants), request.parity_steps);
  }
  require_program(request.program.front());
  const Words names = names_of_overrides(own, "the program");
  for (std::size_t i = 0; i < own.size(); ++i) {
    Variant& variant = variants.emplace_back();
    variant.name = names[i];
    variant.overrides = own[i];
    variant.command = request.program;
    for (const std::string& override_ : own[i]) apply(option, override_, variant);
  }
  return with_parity(std::move(variants), request.parity_steps);
}

tools::ProcessPlan plan_of_program(const Variant& variant, const std::string& dir) {
  const fs::path python = fs::path(console::this_program()).parent_path().parent_path() / "share/ddprun/python";
  const fs::path inject = python / "ddprun/inject";
  if (!fs::exists(inject / "sitecustomize.py")) {
    throw Error(ExitCode::failure, "compare: cannot record a program: " + inject.string() + " has no sitecustomize.py");
  }
  const char* const known = std::getenv("PYTHONPATH");
  tools::ProcessPlan plan;
  plan.command = variant.command;
  plan.environment = variant.environment;
  plan.environment.push_back("PYTHONPATH=" + inject.string() + ":" + python.string() +
                             (known == nullptr || *known == 0 ? "" : std::string(":") + known));
  plan.environment.push_back("DDPRUN_RECORD=" + fs::absolute(dir).string());
  plan.ends_orphans = true;
  record::write_environment(dir, record::collect_environment({}));
  return plan;
}

std::string why_not_recorded(const std::string& dir, const tools::ChildEnd& end) {
  if (!end.is_good()) {
    const std::string cause = tools::last_line_of(record::file_in(dir, "failure.txt"));
    return cause.empty() || end.process.ending != tools::Ending::exited ? end.why() : cause;
  }
  if (fs::exists(record::file_in(dir, "summary.json"))) return "";
  return fs::exists(record::file_in(dir, "steps-rank0.jsonl"))
             ? "its record has no end, because rank 0 ended without Python's exit: by os._exit, or a signal"
             : "nothing was recorded: none of its Python processes made a step with an optimizer of Torch";
}

}  // namespace ddprun::compare
