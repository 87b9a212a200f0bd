#include "tools/bench/bench.hpp"

#include <cstdio>

#include "base/file.hpp"
#include "base/log.hpp"
#include "launch/job_folder.hpp"
#include "launch/supervisor.hpp"
#include "tools/bench/output.hpp"
#include "tools/bench/rank.hpp"
#include "tools/bench/row.hpp"
#include "tools/bench/tune.hpp"

namespace ddprun::bench {
namespace {

// Runs all variants once per round. The order changes from round to round, so other load affects all variants alike.
class Rounds {
 public:
  Rounds(const Plan& plan, const std::vector<std::string>& command, std::vector<Row>& rows)
      : plan_(plan), command_(command), rows_(rows) {}

  ExitCode run() {
    for (int64_t round = 0; round < plan_.rounds; ++round) {
      log::info("bench: round " + std::to_string(round + 1) + " of " + std::to_string(plan_.rounds));
      for (std::size_t turn = 0; turn < plan_.variants.size(); ++turn) {
        const std::size_t variant = (turn + static_cast<std::size_t>(round)) % plan_.variants.size();
        if (const ExitCode code = run(round, variant); code != ExitCode::ok) return code;
      }
    }
    return ExitCode::ok;
  }

 private:
  // The ranks are new processes, so nothing runs in them but the measurement.
  ExitCode run(int64_t round, std::size_t variant) {
    const Task task{round, variant, folder_.path() + "/results"};
    launch::Job job;
    job.command = command_;
    job.command.insert(job.command.end(), {"--task", task.text()});
    job.nproc = plan_.variants[variant].ranks;
    const ExitCode code = launch::supervise(job);
    if (code != ExitCode::ok) {
      log::error("bench: ended in round " + std::to_string(round + 1) + ": " + plan_.variants[variant].text());
      return code;
    }
    add(plan_.variants[variant], read_results(task.path));
    return code;
  }

  void add(const Variant& variant, std::vector<comm::BenchmarkResult> results) {
    auto result = results.begin();
    for (Row& row : rows_) {
      if (row.variant != &variant) continue;
      if (result == results.end()) throw Error(ExitCode::failure, "bench: the ranks left fewer results than cases");
      row.rounds.push_back(std::move(*result++));
    }
  }

  const Plan& plan_;
  const std::vector<std::string>& command_;
  std::vector<Row>& rows_;
  const launch::JobFolder folder_;
};

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
    char text[64];
    std::snprintf(text, sizeof text, "busbw %.3f GB/s is below %.3f", busbw, min_busbw);
    log::error("bench: " + describe(row) + ": " + text);
    reached = false;
  }
  return reached;
}

// Checked before the measurement, not after it.
void require_place(const std::string& option, const std::string& path) {
  const std::string folder = missing_folder(path);
  if (folder.empty()) return;
  throw Error(ExitCode::usage, option + " " + path + ": there is no folder " + folder);
}

}  // namespace

ExitCode run(const Request& request, const Plan& plan, const std::vector<std::string>& command) {
  require_place("--json", request.json);
  require_place("--tune", request.tune);
  const record::Environment environment = environment_of(plan);
  std::vector<Row> rows = rows_of(plan);
  if (const ExitCode code = Rounds(plan, command, rows).run(); code != ExitCode::ok) return code;

  std::fputs(text(plan, rows, environment).c_str(), stdout);
  std::fflush(stdout);
  if (!request.json.empty()) replace_file(request.json, to_json(plan, rows, environment, command));
  if (!results_are_right(rows)) return ExitCode::gate;
  if (!request.tune.empty()) replace_file(request.tune, tuning_of(plan, rows, environment));
  if (request.min_busbw && !reaches(rows, plan, *request.min_busbw)) return ExitCode::gate;
  return ExitCode::ok;
}

}  // namespace ddprun::bench
