#include "tools/tune/read.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ddprun/error.hpp"
#include "record/run_dir.hpp"
#include "record/statistics.hpp"
#include "tools/lib/run.hpp"
#include "tools/predict/bench_rows.hpp"
#include "tools/report/trace.hpp"

namespace ddprun::tune {
namespace {

constexpr int64_t kFirstSteps = 2;  // have one bucket
constexpr double kMicrosecond = 1e-6;

}  // namespace

double step_of(const std::string& run_dir, const std::vector<int64_t>& traced) {
  std::map<int64_t, double> slowest;  // by step
  for (const auto& of_rank : record::read_run(run_dir).steps) {
    for (const record::StepRecord& step : of_rank) {
      const bool counts = step.step > kFirstSteps && std::find(traced.begin(), traced.end(), step.step) == traced.end();
      if (counts) slowest[step.step] = std::max(slowest[step.step], step.total);
    }
  }
  std::vector<double> steps;
  for (const auto& [step, seconds] : slowest) steps.push_back(seconds);
  return record::quantile(std::move(steps), 0.5);
}

std::vector<Call> calls_of(const std::string& run_dir) {
  std::map<int64_t, std::map<int64_t, double>> fastest;  // by bucket and step
  std::map<int64_t, double> bytes;
  for (const report::TraceEvent& event : report::read_trace(record::file_in(run_dir, "trace/trace.json"))) {
    if (event.name != "allreduce" || event.step <= kFirstSteps) continue;
    const double seconds = (event.end - event.begin) * kMicrosecond;
    const auto [place, is_new] = fastest[event.bucket].emplace(event.step, seconds);
    if (!is_new) place->second = std::min(place->second, seconds);
    bytes[event.bucket] = static_cast<double>(event.bytes);
  }
  std::vector<Call> calls;
  for (const auto& [bucket, by_step] : fastest) {
    std::vector<double> seconds;
    for (const auto& [step, one] : by_step) seconds.push_back(one);
    calls.push_back({bytes.at(bucket), record::quantile(std::move(seconds), 0.5)});
  }
  return calls;
}

std::map<std::string, Curve> curves_of(const std::string& path) {
  std::map<std::string, std::vector<std::pair<double, double>>> points;
  for (const predict::BenchRow& row : predict::read_bench_of_any_hosts(path)) {
    points[row.requested].push_back({row.bytes, row.seconds});
  }
  std::map<std::string, Curve> curves;
  for (auto& [algorithm, of_one] : points) curves.emplace(algorithm, Curve(std::move(of_one)));
  return curves;
}

Verified read_comparison(const std::string& folder) try {
  const std::filesystem::path only = *std::filesystem::directory_iterator(folder);
  std::ifstream file(only / "compare.json");
  const auto json = nlohmann::json::parse(file);
  const auto step = [&](int variant) { return json.at("variants").at(variant).at("median").at("step").get<double>(); };
  const auto& against = json.at("against_first").at(0);
  return {step(0), step(1), against.at("verdict"), against.at("sentence"), json.at("warnings")};
} catch (const std::exception& error) {
  throw Error(ExitCode::failure, "cannot read the comparison in " + folder + ": " + error.what());
}

}  // namespace ddprun::tune
