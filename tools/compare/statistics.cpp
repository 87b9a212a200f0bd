#include "tools/compare/statistics.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/statistics/univariate_statistics.hpp>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>

#include "tools/lib/statistics.hpp"

namespace ddprun::compare {
namespace {

using tools::median;

constexpr double kAlpha = 0.05;
constexpr int kResamples = 4000;

// Draws n of n with replacement. std::uniform_int_distribution is not used: its numbers differ between libraries.
class Draw {
 public:
  Draw(uint64_t seed, std::size_t n) : generator_(seed), drawn_(n) {}

  const std::vector<std::size_t>& next() {
    const uint64_t n = drawn_.size();  // below 2^32
    for (std::size_t& one : drawn_) one = (generator_() >> 32) * n >> 32;
    return drawn_;
  }

 private:
  std::mt19937_64 generator_;
  std::vector<std::size_t> drawn_;
};

double median_of(const std::vector<double>& samples, const std::vector<std::size_t>& drawn) {
  return median(tools::each(drawn, [&](std::size_t i) { return samples[i]; }));
}

// With the value of `a`.
Ratio wider(const Ratio& a, const Ratio& b) {
  return {a.value, std::min(a.low, b.low), std::max(a.high, b.high), std::max(a.p, b.p)};
}

// The ratio of the medians, with the bootstrap's interval. Without `draw_base`, both get the same draws.
Ratio ratio_of_medians(const std::vector<double>& times, const std::vector<double>& base, Draw draw_times,
                       std::optional<Draw> draw_base = std::nullopt) {
  std::vector<double> ratios(kResamples);
  for (double& ratio : ratios) {
    const std::vector<std::size_t>& drawn = draw_times.next();
    ratio = median_of(times, drawn) / median_of(base, draw_base ? draw_base->next() : drawn);
  }
  const auto count = static_cast<double>(ratios.size());
  const auto below = std::count_if(ratios.begin(), ratios.end(), [](double ratio) { return ratio < 1; });
  const auto above = std::count_if(ratios.begin(), ratios.end(), [](double ratio) { return ratio > 1; });
  const double tail = (count - static_cast<double>(std::max(below, above)) + 1) / (count + 1);
  const auto at = static_cast<std::ptrdiff_t>(kAlpha / 2 * count);
  const auto low = ratios.begin() + at, high = ratios.end() - 1 - at;
  std::nth_element(ratios.begin(), low, ratios.end());
  std::nth_element(low + 1, high, ratios.end());
  return {median(times) / median(base), *low, *high, std::min(1.0, 2 * tail)};
}

// Of a mean of logarithms, with its standard error.
Ratio student_ratio(double mean, double error, double freedom) {
  if (error == 0) return {std::exp(mean), std::exp(mean), std::exp(mean), mean == 0 ? 1.0 : 0.0};
  const boost::math::students_t_distribution<double> student(freedom);
  const double reach = boost::math::quantile(boost::math::complement(student, kAlpha / 2)) * error;
  const double p = 2 * boost::math::cdf(boost::math::complement(student, std::abs(mean) / error));
  return {std::exp(mean), std::exp(mean - reach), std::exp(mean + reach), p};
}

struct Moments {
  double mean = 0;
  double error2 = 0;  // squared standard error of the mean
  double count = 0;
};

// Of the logarithms of two samples or more.
Moments moments_of(const std::vector<double>& samples) {
  const auto logs = tools::each(samples, [](double sample) { return std::log(sample); });
  const auto [mean, variance] = boost::math::statistics::mean_and_sample_variance(logs);
  const auto count = static_cast<double>(samples.size());
  return {mean, variance / count, count};
}

}  // namespace

Ratio ratio_by_rounds(const std::vector<double>& times, const std::vector<double>& base, uint64_t seed) {
  if (times.size() < 2) return {median(times) / median(base)};
  std::vector<double> of_rounds;
  for (std::size_t i = 0; i < times.size(); ++i) of_rounds.push_back(times[i] / base[i]);
  const Moments moments = moments_of(of_rounds);
  return wider(ratio_of_medians(times, base, Draw(seed, times.size())),
               student_ratio(moments.mean, std::sqrt(moments.error2), moments.count - 1));
}

// Of Student's interval, the degrees of freedom are those of Welch and Satterthwaite.
Ratio ratio_of_groups(const std::vector<double>& times, const std::vector<double>& base, uint64_t seed) {
  if (times.size() < 2 || base.size() < 2) return {median(times) / median(base)};
  const Moments a = moments_of(times), b = moments_of(base);
  const double error2 = a.error2 + b.error2;
  const double freedom = error2 * error2 / (a.error2 * a.error2 / (a.count - 1) + b.error2 * b.error2 / (b.count - 1));
  return wider(ratio_of_medians(times, base, Draw(seed, times.size()), Draw(~seed, base.size())),
               student_ratio(a.mean - b.mean, std::sqrt(error2), freedom));
}

std::vector<double> holm(const std::vector<double>& p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return p[i]; });
  std::vector<double> adjusted(p.size());
  double least = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    least = std::max(least, std::min(1.0, p[order[i]] * static_cast<double>(order.size() - i)));
    adjusted[order[i]] = least;
  }
  return adjusted;
}

Verdict verdict_of(const Ratio& ratio, double adjusted_p) {
  if (!(adjusted_p < kAlpha)) return Verdict::unclear;
  return ratio.high < 1 ? Verdict::faster : ratio.low > 1 ? Verdict::slower : Verdict::unclear;
}

std::string text(Verdict verdict) {
  switch (verdict) {
    case Verdict::faster: return "faster";
    case Verdict::slower: return "slower";
    case Verdict::single_run: return "no verdict from a single run";
    case Verdict::disturbed: return "no verdict, because of other programs";
    case Verdict::unclear: break;
  }
  return "no difference that this number of runs can show";
}

std::vector<std::size_t> turn_order(std::size_t variants, std::size_t round) {
  std::vector<std::size_t> order;
  for (std::size_t place = 0; place < variants; ++place) {
    // 0, 1, n-1, 2, n-2, ...: all distances between neighbours differ.
    const std::size_t first = place % 2 == 1 ? (place + 1) / 2 : (variants - place / 2) % variants;
    order.push_back((first + round / 2) % variants);
  }
  if (round % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace ddprun::compare
