#include "tools/bench/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/text.hpp"
#include "cli/console/table.hpp"
#include "comm/plugin_backend.hpp"
#include "cuda/driver.hpp"
#include "ddprun/plugin/tuning.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::bench {
namespace {

using nlohmann::ordered_json;

const char* name_of(const Plan& plan, comm::Source source) {
  if (source == comm::Source::backend) return "plugin";
  return plan.memory == Memory::cuda ? "cuda" : "malloc";
}

std::string op_of(const Plan& plan, comm::Kind kind) {
  return comm::reduces(kind) ? op_name(plan.op) : "none";
}

// Four significant digits, never an exponent.
std::string cell(double value) {
  if (value < 10) return fmt::format("{:.3f}", value);
  if (value < 100) return fmt::format("{:.2f}", value);
  return value < 1000 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

// The columns of nccl-tests; times in us, bandwidths in GB/s.
console::Table empty_table() {
  return console::Table(console::Table::columns({"size", "count", "type", "redop", "backend", "algorithm", "served",
                                                 "buffer", "place", "median", "p95", "min", "algbw", "busbw", "wrong"},
                                                {"size", "count", "median", "p95", "min", "algbw", "busbw", "wrong"}));
}

std::vector<std::string> cells_of(const Plan& plan, const Row& row) {
  return {std::to_string(row.bytes()),
          std::to_string(row.count()),
          type_name(plan.dtype),
          op_of(plan, row.what.kind),
          row.variant->plugin.table->name,
          row.variant->algorithm,
          row.execution().algorithm + "/" + row.execution().transport,
          name_of(plan, row.what.source),
          row.what.in_place ? "in" : "out",
          cell(row.quantile(0.5) * 1e6),
          cell(row.quantile(0.95) * 1e6),
          cell(row.quantile(0) * 1e6),
          cell(row.algbw() * 1e-9),
          cell(row.busbw() * 1e-9),
          plan.benchmark.checks > 0 ? std::to_string(row.wrong()) : "N/A"};
}

// The GPUs that ranks use, and their driver.
void add_gpus(const Plan& plan, std::map<std::string, std::string>& extra) {
  if (plan.memory == Memory::host) return;
  extra["driver"] = "for CUDA " + cuda::driver_version();
  for (const Variant& variant : plan.variants) {
    const int here = plan.request.ranks_here > 0 ? static_cast<int>(plan.request.ranks_here) : variant.ranks;
    for (int rank = 0; rank < here; ++rank) {
      const int device = device_of(plan, rank);
      const cuda::Gpu& gpu = cuda::gpus().at(static_cast<std::size_t>(device));
      extra["gpu." + std::to_string(device)] = gpu.name + ", " + std::to_string(gpu.memory_bytes >> 20) + " MiB";
    }
  }
}

ordered_json settings_of(const Plan& plan) {
  return {{"device", plan.request.device},        {"devices", plan.request.devices}, {"rounds", plan.request.rounds},
          {"iterations", plan.benchmark.samples}, {"warmup", plan.benchmark.warmup}, {"checks", plan.benchmark.checks}};
}

ordered_json json_of(const Plan& plan, const Row& row) {
  ordered_json object = {
      {"collective", name_of(row.what.kind)},
      {"ranks", row.variant->ranks},
      {"size", row.bytes()},
      {"count", row.count()},
      {"type", type_name(plan.dtype)},
      {"redop", op_of(plan, row.what.kind)},
      {"root", plan.request.root},
      {"backend", row.variant->plugin.table->name},
      {"algorithm", row.variant->algorithm},
      {"served", {{"algorithm", row.execution().algorithm}, {"transport", row.execution().transport}}},
      {"device", plan.request.device},
      {"buffer", name_of(plan, row.what.source)},
      {"in_place", row.what.in_place},
      {"median", row.quantile(0.5)},
      {"p95", row.quantile(0.95)},
      {"min", row.quantile(0)},
      {"algbw", row.algbw()},
      {"busbw", row.busbw()}};
  object["wrong"] = plan.benchmark.checks > 0 ? ordered_json(row.wrong()) : ordered_json();
  for (const comm::BenchmarkResult& round : row.rounds) {
    object["rounds"].push_back({{"batch", round.batch}, {"samples", round.seconds}});
  }
  return object;
}

constexpr double kWorthIt = 0.97;  // of the time of the algorithm chosen for the next smaller size

using Medians = std::map<std::string, double>;  // by algorithm
using Sizes = std::map<std::size_t, Medians>;   // by bytes

bool counts(const Row& row, Memory memory) {
  const auto capabilities = comm::capabilities_of(*row.variant->plugin.table);
  const bool has_own = capabilities.alloc && capabilities.alloc_memory == memory;
  return row.what.in_place && (row.what.source == comm::Source::backend) == has_own;
}

std::string fastest(const Medians& medians, const std::string& before) {
  const auto least = std::ranges::min_element(medians, {}, &Medians::value_type::second);
  const auto kept = medians.find(before);
  if (kept != medians.end() && least->second > kWorthIt * kept->second) return before;
  return least->first;
}

// The classes for one number of ranks.
void add_rows(const std::string& backend, int ranks, const Sizes& sizes, std::vector<TuningRow>& rows) {
  std::string algorithm;
  std::size_t below = 0;
  for (const auto& [bytes, medians] : sizes) {
    const std::string next = fastest(medians, algorithm);
    if (next != algorithm && !algorithm.empty()) {
      const double limit = std::sqrt(static_cast<double>(below) * static_cast<double>(bytes));
      rows.push_back({backend, ranks, static_cast<uint64_t>(limit), algorithm});
    }
    algorithm = next;
    below = bytes;
  }
  rows.push_back({backend, ranks, TuningRow::kNoLimit, algorithm});
}

}  // namespace

record::Environment environment_of(const Plan& plan) {
  std::map<std::string, std::string> extra;
  for (const Variant& variant : plan.variants) {
    const std::string key = std::string("plugin.") + variant.plugin.table->name;
    extra[key] = variant.plugin.path;
    extra[key + ".version"] = variant.plugin.table->version;
    extra[key + ".library"] = variant.plugin.table->library;
  }
  add_gpus(plan, extra);
  return record::collect_environment(extra);
}

std::string hosts_text(const Plan& plan) {
  if (plan.hosts.empty()) return "";
  std::string text = console::several(std::ssize(plan.hosts), "host") + ": ";
  for (const HostRanks& host : plan.hosts) {
    text += (&host == plan.hosts.data() ? "" : "; ") + host.name + " has " + rank_list(host.ranks);
  }
  return text;
}

std::string text(const Plan& plan, const std::vector<Row>& rows, const record::Environment& environment) {
  std::string text = "# ddprun " + environment.ddprun + " on " + environment.host + ": " + environment.cpu_model +
                     ", " + std::to_string(environment.cores) + " cores for the ranks, which are not pinned; load " +
                     environment.load + "\n";
  if (!plan.hosts.empty()) text += "# " + hosts_text(plan) + "\n";
  for (const auto& [key, value] : environment.extra) text += "# " + key + " " + value + "\n";
  text += "# " + std::to_string(plan.request.rounds) + " rounds of " + std::to_string(plan.benchmark.samples) +
          " samples; buffers on device " + plan.request.device +
          "; size in bytes; median, p95 and min in us; algbw and busbw in GB/s at the median\n";
  console::Table table = empty_table();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    table.row(cells_of(plan, row));
    const bool last = i + 1 == rows.size();
    const auto same = [&](const Row& next) {
      return next.what.kind == row.what.kind && next.variant->ranks == row.variant->ranks;
    };
    if (!last && same(rows[i + 1])) continue;
    text += std::string("\n# ") + name_of(row.what.kind) + ", " + console::several(row.variant->ranks, "rank") + "\n" +
            table.printed();
    table = empty_table();
  }
  return text;
}

std::string to_json(const Plan& plan, const std::vector<Row>& rows, const record::Environment& environment,
                    const std::vector<std::string>& command) {
  ordered_json object = {{"ddprun_bench", 1},
                         {"command", command},
                         {"environment", ordered_json::parse(record::to_json(environment))},
                         {"settings", settings_of(plan)},
                         {"hosts", ordered_json::array()},
                         {"rows", ordered_json::array()}};
  for (const HostRanks& host : plan.hosts) object["hosts"].push_back({{"name", host.name}, {"ranks", host.ranks}});
  for (const Row& row : rows) object["rows"].push_back(json_of(plan, row));
  return object.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

uint64_t Row::wrong() const {
  uint64_t sum = 0;
  for (const auto& round : rounds) sum += round.wrong;
  return sum;
}

double Row::quantile(double share) const {
  std::vector<double> samples;
  for (const auto& round : rounds) samples.insert(samples.end(), round.seconds.begin(), round.seconds.end());
  return tools::quantile(std::move(samples), share);
}

double Row::algbw() const {
  return static_cast<double>(bytes()) / quantile(0.5);
}

double Row::busbw() const {
  return algbw() * comm::bus_factor(what.kind, variant->ranks);
}

std::vector<Row> rows_of(const Plan& plan) {
  std::vector<Row> rows;
  for (const Variant& variant : plan.variants) {
    for (const comm::BenchmarkCase& what : cases_of(plan, variant)) rows.push_back({&variant, what, {}});
  }
  const auto place = [&](const Row& row) {
    const auto kind = std::ranges::find(plan.collectives, row.what.kind);
    return std::tuple(kind - plan.collectives.begin(), row.variant->ranks, row.what.bytes);
  };
  std::ranges::stable_sort(rows, {}, place);
  return rows;
}

std::string tuning_of(const Plan& plan, const std::vector<Row>& rows, const record::Environment& environment) {
  std::map<int, Sizes> measured;
  for (const Row& row : rows) {
    if (counts(row, plan.memory)) measured[row.variant->ranks][row.bytes()][row.variant->algorithm] = row.quantile(0.5);
  }
  const Variant& variant = plan.variants.front();
  std::vector<TuningRow> table;
  for (const auto& [ranks, sizes] : measured) add_rows(variant.plugin.table->name, ranks, sizes, table);
  std::string origin = "Measured with ddprun bench --tune on " + environment.date + ", " + environment.host + ", " +
                       environment.cpu_model + ", " + std::to_string(environment.cores) + " cores";
  if (!plan.hosts.empty()) origin += ", on " + hosts_text(plan);
  return to_text(table, origin + ".");
}

}  // namespace ddprun::bench
