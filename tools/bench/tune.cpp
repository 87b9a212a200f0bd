#include "tools/bench/tune.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "comm/plugin_backend.hpp"
#include "ddprun/plugin/tuning.hpp"
#include "tools/bench/output.hpp"

namespace ddprun::bench {
namespace {

constexpr double kWorthIt = 0.97;  // of the time of the algorithm chosen for the next smaller size

using Medians = std::map<std::string, double>;  // by algorithm
using Sizes = std::map<std::size_t, Medians>;   // by bytes

bool counts(const Row& row, Memory memory) {
  const auto capabilities = comm::capabilities_of(*row.variant->plugin.table);
  const bool has_own = capabilities.alloc && capabilities.alloc_memory == memory;
  return row.what.in_place && (row.what.source == comm::Source::backend) == has_own;
}

std::string fastest(const Medians& medians, const std::string& before) {
  const auto least = std::min_element(medians.begin(), medians.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
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
