#include "tools/tune/result.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/console/table.hpp"
#include "cli/console/units.hpp"
#include "tools/compare/other_cpu.hpp"
#include "tools/predict/fit.hpp"

namespace ddprun::tune {
namespace {

using console::human_bytes;
using console::human_time;
using nlohmann::ordered_json;

// "1 bucket", "2 buckets"
std::string counted(std::size_t number, const std::string& what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string type_of(const std::string& compression) {
  return compression == "none" ? "float32" : compression;
}

std::string size_text(double bytes) {
  return human_bytes(static_cast<int64_t>(bytes));
}

// The curve as a latency and a bandwidth, for people; expected() does not use it.
predict::Link link_of(const Curve& curve) {
  std::vector<predict::Measured> measured;
  for (const auto& [bytes, seconds] : curve.points()) measured.push_back({{1, bytes}, seconds});
  return predict::fit(measured);
}

console::Table table_of_links(const Result& result) {
  using console::Align;
  console::Table table({{"allreduce"},
                        {"gradients"},
                        {"latency", Align::right},
                        {"bandwidth", Align::right},
                        {"smallest", Align::right},
                        {"largest", Align::right}});
  for (const auto& [method, curve] : result.basis.curves) {
    const predict::Link link = link_of(curve);
    const auto cell = [](const std::pair<double, double>& point) {
      return size_text(point.first) + ": " + human_time(point.second);
    };
    table.row({method.backend + " " + method.algorithm, type_of(method.compression),
               link.alpha > 0 ? human_time(link.alpha) : "-",
               link.beta > 0 ? console::human_bandwidth(1 / link.beta) : "-", cell(curve.points().front()),
               cell(curve.points().back())});
  }
  return table;
}

std::string shape_of(const Result& result) {
  return fmt::format("{} ranks on {}", result.ranks, counted(static_cast<std::size_t>(result.hosts), "host"));
}

std::string step_text(const Result& result, const Settings& settings) {
  const predict::Replayed step = expected(result.basis, settings);
  const auto buckets = buckets_of(result.basis.gradients, settings.bucket_cap_mb).size();
  return fmt::format("{}, of which {} is exposed communication ({})", human_time(step.step), human_time(step.exposed),
                     counted(buckets, "bucket"));
}

ordered_json json_of(const Settings& settings) {
  return {{"comm.backend", settings.backend},
          {"comm.algorithm", settings.algorithm},
          {"strategy.bucket_cap_mb", settings.bucket_cap_mb},
          {"strategy.compression", settings.compression}};
}

ordered_json json_of(const Result& result, const Settings& settings) {
  const predict::Replayed step = expected(result.basis, settings);
  ordered_json object = {{"settings", json_of(settings)}, {"step", step.step}, {"exposed", step.exposed}};
  for (const predict::Bucket& bucket : buckets_of(result.basis.gradients, settings.bucket_cap_mb)) {
    object["buckets"].push_back(bucket.bytes);
  }
  return object;
}

}  // namespace

std::string about_choice(const Result& result) {
  const Basis& basis = result.basis;
  std::string text = fmt::format("{}: {}\n\n{}\n", result.name, shape_of(result), table_of_links(result).printed());
  text += fmt::format("{}, {}; a step takes {} without communication, {} of it backward\n",
                      counted(basis.gradients.size(), "gradient"), size_text(basis.gradient_bytes()),
                      human_time(basis.parts.total()), human_time(basis.parts.backward));
  text += fmt::format("extra time of an allreduce within a step, against the benchmark: {} per call",
                      human_time(basis.per_call));
  for (const auto& [what, seconds] : basis.per_byte) {
    text += fmt::format(", {} per MiB of {} ({})", human_time(seconds * (1 << 20)), type_of(what.second), what.first);
  }
  text += "\n\n";
  if (result.other_cpu > compare::kDisturbing) {
    text += fmt::format(
        "Other programs used {:.0f} % of this machine's CPU time meanwhile, so these times are longer than on a quiet "
        "machine, and other settings may be best there. Stop them, and tune again.\n",
        100 * result.other_cpu);
  }
  text += fmt::format("expected with the config as it is: {}\n", step_text(result, result.own));
  if (result.changes().empty()) {
    return text + fmt::format("nothing is expected to be more than {:.0f} % faster: keep the config\n", 100 * kNoise);
  }
  return text + fmt::format("expected with the lines below:     {}\n\n{}", step_text(result, result.chosen),
                            to_toml(result.changes()));
}

std::string about_verdict(const Result& result) {
  if (!result.verified) return "";
  const Verified& verified = *result.verified;
  const double before = expected(result.basis, result.own).step, after = expected(result.basis, result.chosen).step;
  console::Table table({{""},
                        {"expected", console::Align::right},
                        {"measured", console::Align::right},
                        {"error", console::Align::right}});
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
  ordered_json object = {
      {"ddprun_tune", 1},
      {"command", command},
      {"hosts", result.hosts},
      {"ranks", result.ranks},
      {"links", ordered_json::array()},
      {"gradients", ordered_json::array()},
      {"parts",
       {{"forward", basis.parts.forward}, {"backward", basis.parts.backward}, {"optimizer", basis.parts.optimizer}}},
      {"per_call", basis.per_call},
      {"per_byte", ordered_json::array()},
      {"config", json_of(result, result.own)},
      {"chosen", json_of(result, result.chosen)},
      {"measured", nullptr},
      {"is_better", result.is_better()}};
  for (const auto& [method, curve] : basis.curves) {
    const predict::Link link = link_of(curve);
    object["links"].push_back({{"backend", method.backend},
                               {"algorithm", method.algorithm},
                               {"compression", method.compression},
                               {"alpha", link.alpha},
                               {"beta", link.beta},
                               {"points", curve.points()}});
  }
  for (const auto& [what, seconds] : basis.per_byte) {
    object["per_byte"].push_back({{"backend", what.first}, {"compression", what.second}, {"seconds", seconds}});
  }
  for (const predict::Bucket& gradient : basis.gradients) {
    object["gradients"].push_back({{"bytes", gradient.bytes}, {"remaining", gradient.remaining}});
  }
  if (result.verified) {
    object["measured"] = {{"config", result.verified->before},
                          {"chosen", result.verified->after},
                          {"sentence", result.verified->sentence}};
  }
  return object.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ddprun::tune
