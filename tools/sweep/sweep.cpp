#include "tools/sweep/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/file.hpp"
#include "ddprun/plugin/words.hpp"
#include "record/fields.hpp"
#include "record/run_dir.hpp"
#include "tools/compare/figures.hpp"
#include "tools/compare/output.hpp"
#include "tools/compare/runner.hpp"
#include "tools/compare/statistics.hpp"
#include "tools/compare/variant.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::sweep {
namespace {

using compare::PageFile, compare::RunEnd, compare::Runner, compare::Trial, compare::Variant;

constexpr std::size_t kFewestFinished = 2;

void check(const Request& request) {
  const std::vector<std::string> measures = {"validation.loss", "validation.accuracy", "test.loss", "test.accuracy",
                                             "throughput"};
  if (!request.by.empty() && std::find(measures.begin(), measures.end(), request.by) == measures.end()) {
    throw Error(ExitCode::usage, "--by " + request.by + ": " + expected_one_of(request.by, measures));
  }
  if (request.config.empty() || request.vary.empty()) {
    throw Error(ExitCode::usage, "sweep: expected --config FILE and --vary KEY=VALUE,VALUE");
  }
  if (request.random && *request.random < 1) throw Error(ExitCode::usage, "--random: expected at least 1");
}

bool has_validation(const Variant& variant) {
  return variant.loaded.experiment.data.validation > 0;
}

void require_measure(const Request& request, const std::vector<Variant>& variants) {
  for (const Variant& variant : variants) {
    if (request.by == "throughput") return;
    const bool lacks_validation = request.by.starts_with("validation.") && !has_validation(variant);
    if (variant.loaded.experiment.train.evaluate && !lacks_validation) continue;
    throw Error(ExitCode::usage, "--by " + request.by + " needs " +
                                     (lacks_validation ? "data.validation" : "train.evaluate = true") + ", also in " +
                                     variant.name);
  }
}

std::vector<double> measured(const std::vector<record::EpochRecord>& epochs, const std::string& by) {
  std::vector<double> values;
  for (const auto& epoch : epochs) values.push_back(record::metric_of(epoch, by));
  return values;
}

// The column of the table says that it failed.
std::string without_prefix(const std::string& line) {
  constexpr std::string_view kPrefix = "ddprun: failed: ";
  return line.starts_with(kPrefix) ? line.substr(kPrefix.size()) : line;
}

class Sweep {
 public:
  Sweep(const Request& request, const std::vector<Trial>& trials, const std::vector<Variant>& variants)
      : request_(request), trials_(trials), variants_(variants), runner_(request.running, "sweep", variants.front()) {}

  ExitCode run() {
    runner_.validate({variants_.front()});
    runner_.expect(static_cast<int64_t>(variants_.size()));
    for (std::size_t i = 0; i < variants_.size(); ++i) try_one(i);
    sort_results(results_, request_.by);
    replace_file(runner_.folder() + "/sweep.json", sweep_json(request_, results_));
    page_.write(runner_.folder(), sweep_page(request_, results_));
    std::string out = sweep_table(request_, results_).printed();
    for (const std::string& line : about_best(request_, results_)) out += line + "\n";
    out += "sweep folder: " + runner_.folder() + "\n";
    std::fwrite(out.data(), 1, out.size(), stdout);
    std::fflush(stdout);
    return results_.front().outcome == Outcome::finished ? ExitCode::ok : ExitCode::failure;
  }

 private:
  void try_one(std::size_t number) {
    const Variant& variant = variants_[number];
    const std::string label = fmt::format("trial {} of {}: {}", number + 1, variants_.size(), variant.name);
    const auto epochs = static_cast<std::size_t>(variant.loaded.experiment.train.epochs.value_or(0));
    const RunEnd end = runner_.run(variant, label, {}, [&](const std::string& dir) { return loses(dir, epochs); });
    TrialResult result;
    result.variant = variant;
    for (const std::string& override_ : trials_[number])
      result.values.push_back(override_.substr(override_.find('=') + 1));
    result.dir = end.dir;
    fill_in(result, end);
    results_.push_back(result);
    runner_.print(label + ": " + outcome_text(result, request_.by));
  }

  void fill_in(TrialResult& result, const RunEnd& end) {
    const bool stopped = end.process.ending == tools::Ending::ended_early;
    if (end.dir.empty() || (!stopped && !end.is_good())) {
      result.outcome = Outcome::failed;
      result.cause =
          end.process.ending == tools::Ending::timed_out ? "--timeout" : without_prefix(tools::last_line_of(end.log));
      return;
    }
    result.outcome = stopped ? Outcome::stopped : Outcome::finished;
    result.epochs = tools::read_epochs(end.dir, stopped);
    if (stopped) return;
    const tools::Run run = tools::read_run(end.dir);
    result.throughput = run.summary.throughput;
    result.total_time = run.summary.total_time;
    const std::string& by = request_.by;
    if (by.ends_with(".accuracy") && std::isnan(metric_of(result, by))) {
      throw Error(ExitCode::usage, "--by " + by + ": the model \"" + run.summary.model +
                                       "\" reports no accuracy; use --by " + by.substr(0, by.find('.')) + ".loss");
    }
    finished_.push_back(measured(run.epochs, request_.by));
  }

  // For a run of this many epochs; after the last one there is nothing to save.
  bool loses(const std::string& dir, std::size_t epochs) const {
    if (!request_.stop_losers || request_.by == "throughput" || dir.empty() || !record::is_run(dir)) return false;
    const std::vector<double> trial = measured(tools::read_epochs(dir, true), request_.by);
    return trial.size() < epochs && is_loser(trial, finished_, request_.by.ends_with(".loss"));
  }

  const Request& request_;
  const std::vector<Trial>& trials_;
  const std::vector<Variant>& variants_;
  const PageFile page_;
  Runner runner_;
  std::vector<TrialResult> results_;
  std::vector<std::vector<double>> finished_;  // the metric of each epoch of each finished trial
};

}  // namespace

bool is_loser(const std::vector<double>& trial, const std::vector<std::vector<double>>& finished,
              bool smaller_is_better) {
  if (trial.empty()) return false;
  std::vector<double> others;
  for (const std::vector<double>& other : finished) {
    if (other.size() >= trial.size()) others.push_back(other[trial.size() - 1]);
  }
  if (others.size() < kFewestFinished) return false;
  const double middle = tools::median(others);
  return smaller_is_better ? trial.back() > middle : trial.back() < middle;
}

ExitCode run(const Request& request) {
  check(request);
  const std::vector<Trial> trials = compare::trials_of(request.vary, request.random, request.seed);
  const std::vector<Variant> variants = compare::variants_of_overrides(request.config, trials, request.overrides);
  Request chosen = request;
  const bool validates = std::all_of(variants.begin(), variants.end(), has_validation);
  if (chosen.by.empty()) chosen.by = validates ? "validation.loss" : "test.loss";
  require_measure(chosen, variants);
  return Sweep(chosen, trials, variants).run();
}

}  // namespace ddprun::sweep
