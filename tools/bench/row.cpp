#include "tools/bench/row.hpp"

#include <algorithm>
#include <tuple>

#include "record/statistics.hpp"

namespace ddprun::bench {

uint64_t Row::wrong() const {
  uint64_t sum = 0;
  for (const auto& round : rounds) sum += round.wrong;
  return sum;
}

double Row::quantile(double share) const {
  std::vector<double> samples;
  for (const auto& round : rounds) samples.insert(samples.end(), round.seconds.begin(), round.seconds.end());
  return record::quantile(std::move(samples), share);
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
    const auto kind = std::find(plan.collectives.begin(), plan.collectives.end(), row.what.kind);
    return std::tuple(kind - plan.collectives.begin(), row.variant->ranks, row.what.bytes);
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) { return place(a) < place(b); });
  return rows;
}

}  // namespace ddprun::bench
