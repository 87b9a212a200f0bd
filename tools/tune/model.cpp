#include "tools/tune/model.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>

#include "base/text.hpp"
#include "cli/config/experiment.hpp"
#include "comm/bucket_plan.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::tune {
namespace {

using predict::Bucket;

constexpr double kMiB = 1 << 20;
constexpr double kCaps[] = {0.25, 0.5, 1, 2, 5, 10, 25, 50};  // MiB

// Every method with a curve, with the config's buckets, one bucket for all gradients, and sizes below it.
std::vector<Settings> candidates(const Basis& basis, const Settings& own) {
  const double largest = std::ceil(basis.gradient_bytes() / kMiB);
  std::set<double> caps = {own.bucket_cap_mb, largest};
  for (const double cap : kCaps) {
    if (cap < largest) caps.insert(cap);
  }
  std::vector<Settings> all;
  for (const auto& [method, curve] : basis.curves) {
    for (const double cap : caps) all.push_back({method.backend, method.algorithm, cap, method.compression});
  }
  return all;
}

}  // namespace

double seconds_at(const Curve& curve, double bytes) {
  const auto above = curve.lower_bound(bytes);
  if (above == curve.begin()) return above->second;
  const auto below = std::prev(above);
  if (above == curve.end()) return below->second * bytes / below->first;
  return std::lerp(below->second, above->second, (bytes - below->first) / (above->first - below->first));
}

double Basis::gradient_bytes() const {
  return std::accumulate(gradients.begin(), gradients.end(), 0.0,
                         [](double sum, const Bucket& gradient) { return sum + gradient.bytes; });
}

double sent(const std::string& compression) {
  return compression == "none" ? 1 : 0.5;
}

double extra_per_call(std::vector<Call> calls, const Curve& curve) {
  std::sort(calls.begin(), calls.end(), [](const Call& a, const Call& b) { return a.bytes < b.bytes; });
  std::vector<double> extra;
  for (std::size_t i = 0; i < (calls.size() + 1) / 2; ++i) {
    extra.push_back(calls[i].seconds - seconds_at(curve, calls[i].bytes));
  }
  return std::max(0.0, tools::median(std::move(extra)));
}

std::vector<Bucket> buckets_of(const std::vector<Bucket>& gradients, double bucket_cap_mb) {
  const auto sizes = tools::each(gradients, [](const Bucket& gradient) {
    return comm::ParameterInfo{static_cast<std::size_t>(gradient.bytes), DType::uint8};
  });
  std::vector<std::size_t> order(gradients.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<Bucket> buckets;
  for (const comm::BucketPlan& plan :
       comm::plan_buckets(sizes, order, static_cast<std::size_t>(std::min(1.0, bucket_cap_mb) * kMiB),
                          static_cast<std::size_t>(bucket_cap_mb * kMiB))) {
    buckets.push_back({static_cast<double>(plan.elements), gradients[plan.slots.back().parameter].remaining});
  }
  return buckets;
}

predict::Replayed expected(const Basis& basis, const Settings& settings) {
  const Curve& curve = basis.curves.at({settings.backend, settings.algorithm, settings.compression});
  const double per_byte = basis.per_byte.at({settings.backend, settings.compression});
  const auto buckets = buckets_of(basis.gradients, settings.bucket_cap_mb);
  const auto seconds = tools::each(buckets, [&](const Bucket& bucket) {
    const double bytes = bucket.bytes * sent(settings.compression);
    return seconds_at(curve, bytes) + basis.per_call + per_byte * bytes;
  });
  return predict::replay(basis.parts, buckets, seconds);
}

double fitted_per_byte(Basis basis, const Settings& settings, double step) {
  double& per_byte = basis.per_byte[{settings.backend, settings.compression}];
  const auto takes_longer = [&](double seconds) {
    per_byte = seconds;
    return expected(basis, settings).step > step;
  };
  double low = 0, high = step / basis.gradient_bytes() / sent(settings.compression);  // the whole step for each byte
  constexpr int kHalvings = 50;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = std::midpoint(low, high);
    (takes_longer(middle) ? high : low) = middle;
  }
  return low;
}

Settings choose(const Basis& basis, const Settings& own) {
  const std::vector<Settings> all = candidates(basis, own);
  const auto steps = tools::each(all, [&](const Settings& one) { return expected(basis, one).step; });
  const double limit = std::ranges::min(steps) * (1 + kNoise);
  const auto rank = [&](std::size_t i) {
    return std::tuple(steps[i] > limit, all[i].compression != own.compression, changes(own, all[i]).size(), steps[i]);
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (rank(i) < rank(best)) best = i;
  }
  return all[best];
}

Settings settings_of(const config::Experiment& experiment) {
  const auto& strategy = experiment.strategy;
  return {experiment.comm.backend, experiment.comm.algorithm, strategy.bucket_cap_mb, strategy.compression};
}

std::string Change::override_text() const {
  const std::string name = value.starts_with('"') ? value.substr(1, value.size() - 2) : value;
  const bool is_word =
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  return table + "." + key + "=" + (is_word ? name : value);
}

std::vector<Change> changes(const Settings& from, const Settings& to) {
  std::vector<Change> changes;
  const auto add = [&](const char* table, const char* key, const auto& before, const auto& after, auto&& text) {
    if (before != after) changes.push_back({table, key, text(after)});
  };
  add("comm", "backend", from.backend, to.backend, config::quoted);
  add("comm", "algorithm", from.algorithm, to.algorithm, config::quoted);
  add("strategy", "bucket_cap_mb", from.bucket_cap_mb, to.bucket_cap_mb, exact_text);
  add("strategy", "compression", from.compression, to.compression, config::quoted);
  return changes;
}

std::string to_toml(const std::vector<Change>& changes) {
  std::string text, table;
  for (const Change& change : changes) {
    if (change.table != table) text += "[" + (table = change.table) + "]\n";
    text += change.key + " = " + change.value + "\n";
  }
  return text;
}

}  // namespace ddprun::tune
