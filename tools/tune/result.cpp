#include "tools/tune/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ranges>

#include "cli/console/table.hpp"
#include "ddprun/error.hpp"
#include "record/run_dir.hpp"
#include "tools/lib/process.hpp"
#include "tools/lib/run.hpp"
#include "tools/lib/statistics.hpp"
#include "tools/predict/links.hpp"
#include "tools/report/runs.hpp"

namespace ddprun::tune {
namespace {

using console::human_bytes;
using console::human_time;
using console::several;
using nlohmann::ordered_json;

std::string type_of(const std::string& compression) {
  return compression == "none" ? "float32" : compression;
}

std::string size_text(double bytes) {
  return human_bytes(static_cast<int64_t>(bytes));
}

console::Table table_of_links(const Result& result) {
  console::Table table = report::table_with({"allreduce", "gradients"}, {"smallest", "largest"});
  for (const auto& [method, curve] : result.basis.curves) {
    const auto cell = [](const Curve::value_type& point) {
      return size_text(point.first) + ": " + human_time(point.second);
    };
    table.row({method.backend + " " + method.algorithm, type_of(method.compression), cell(*curve.begin()),
               cell(*curve.rbegin())});
  }
  return table;
}

std::string step_text(const Result& result, const Settings& settings) {
  const predict::Replayed step = expected(result.basis, settings);
  const auto buckets = buckets_of(result.basis.gradients, settings.bucket_cap_mb).size();
  return fmt::format("{}, of which {} is exposed communication ({})", human_time(step.step), human_time(step.exposed),
                     several(static_cast<int64_t>(buckets), "bucket"));
}

ordered_json json_of(const Settings& settings) {
  return {{"comm.backend", settings.backend},
          {"comm.algorithm", settings.algorithm},
          {"strategy.bucket_cap_mb", settings.bucket_cap_mb},
          {"strategy.compression", settings.compression}};
}

ordered_json json_of(const Result& result, const Settings& settings) {
  const predict::Replayed step = expected(result.basis, settings);
  const auto buckets = buckets_of(result.basis.gradients, settings.bucket_cap_mb);
  return {{"settings", json_of(settings)},
          {"step", step.step},
          {"exposed", step.exposed},
          {"buckets", tools::each(buckets, &predict::Bucket::bytes)}};
}

constexpr int64_t kFirstSteps = 2;  // have one bucket
constexpr double kMicrosecond = 1e-6;

}  // namespace

std::string about_choice(const Result& result) {
  const Basis& basis = result.basis;
  std::string text = fmt::format("{}: {} ranks on {}\n\n{}\n", result.name, result.ranks, several(result.hosts, "host"),
                                 table_of_links(result).printed());
  text += fmt::format("{}, {}; a step takes {} without communication, {} of it backward\n",
                      several(std::ssize(basis.gradients), "gradient"), size_text(basis.gradient_bytes()),
                      human_time(basis.parts.total()), human_time(basis.parts.backward));
  text += fmt::format("extra time of an allreduce within a step, against the benchmark: {} per call",
                      human_time(basis.per_call));
  for (const auto& [what, seconds] : basis.per_byte) {
    text += fmt::format(", {} per MiB of {} ({})", human_time(seconds * (1 << 20)), type_of(what.second), what.first);
  }
  text += "\n\n";
  if (result.other_cpu > tools::kDisturbing) {
    text += fmt::format(
        "Other programs used {} of this machine's CPU time meanwhile, so these times are longer than on a quiet "
        "machine, and other settings may be best there. Stop them, and tune again.\n",
        console::percent(result.other_cpu, 0));
  }
  text += fmt::format("expected with the config as it is: {}\n", step_text(result, result.own));
  if (result.changes().empty()) {
    return text +
           fmt::format("nothing is expected to be more than {} faster: keep the config\n", console::percent(kNoise, 0));
  }
  return text + fmt::format("expected with the lines below:     {}\n\n{}", step_text(result, result.chosen),
                            to_toml(result.changes()));
}

std::string about_verdict(const Result& result) {
  if (!result.verified) return "";
  const Verified& verified = *result.verified;
  const double before = expected(result.basis, result.own).step, after = expected(result.basis, result.chosen).step;
  console::Table table = report::table_with({""}, {"expected", "measured", "error"});
  const auto row = [&](const std::string& name, double said, double measured) {
    table.row({name, human_time(said), human_time(measured), fmt::format("{:+.1f} %", 100 * (said / measured - 1))});
  };
  row("the config as it is (fitted)", before, verified.before);
  row("with the lines", after, verified.after);
  std::string text = fmt::format("\n{}\n{}\n", table.printed(), verified.sentence);
  for (const std::string& line : verified.warnings) text += line + "\n";
  if (!result.is_better()) return text + "the lines: " + verified.verdict + "; keep the config\n";
  if (result.chosen.compression != result.own.compression) {
    text += "strategy.compression changes the numbers of training: check that it still learns as well\n";
  }
  return text + "the lines were faster in this comparison: put them into the config\n";
}

std::string to_json(const Result& result, const std::vector<std::string>& command) {
  const Basis& basis = result.basis;
  const auto json_of_link = [](const auto& link) -> ordered_json {
    const auto& [method, curve] = link;
    return {{"backend", method.backend},
            {"algorithm", method.algorithm},
            {"compression", method.compression},
            {"points", curve}};
  };
  const auto json_of_cost = [](const auto& cost) -> ordered_json {
    return {{"backend", cost.first.first}, {"compression", cost.first.second}, {"seconds", cost.second}};
  };
  const auto json_of_gradient = [](const predict::Bucket& gradient) -> ordered_json {
    return {{"bytes", gradient.bytes}, {"remaining", gradient.remaining}};
  };
  ordered_json object = {
      {"ddprun_tune", 1},
      {"command", command},
      {"hosts", result.hosts},
      {"ranks", result.ranks},
      {"links", tools::each(basis.curves, json_of_link)},
      {"gradients", tools::each(basis.gradients, json_of_gradient)},
      {"parts",
       {{"forward", basis.parts.forward}, {"backward", basis.parts.backward}, {"optimizer", basis.parts.optimizer}}},
      {"per_call", basis.per_call},
      {"per_byte", tools::each(basis.per_byte, json_of_cost)},
      {"config", json_of(result, result.own)},
      {"chosen", json_of(result, result.chosen)},
      {"measured", nullptr},
      {"is_better", result.is_better()}};
  if (result.verified) {
    object["measured"] = {{"config", result.verified->before},
                          {"chosen", result.verified->after},
                          {"sentence", result.verified->sentence}};
  }
  return object.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

double step_of(const std::string& run_dir, const std::vector<int64_t>& traced) {
  std::map<int64_t, double> slowest;  // by step
  for (const auto& of_rank : tools::read_run(run_dir).steps) {
    for (const record::StepRecord& step : of_rank) {
      const bool counts = step.step > kFirstSteps && std::find(traced.begin(), traced.end(), step.step) == traced.end();
      if (counts) slowest[step.step] = std::max(slowest[step.step], step.total);
    }
  }
  return tools::median(tools::each(std::views::values(slowest)));
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
    calls.push_back({bytes.at(bucket), tools::median(tools::each(std::views::values(by_step)))});
  }
  return calls;
}

std::map<std::string, Curve> curves_of(const std::string& path) {
  std::map<std::string, Curve> curves;
  for (const predict::BenchRow& row : predict::read_bench({path}, true)) {
    curves[row.requested].emplace(row.bytes, row.seconds);
  }
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
