#include "tools/compare/statistics.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "tools/lib/statistics.hpp"

namespace ddprun::compare {
namespace {

using tools::median;

constexpr double kAlpha = 0.05;
constexpr int kResamples = 4000;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Draws n of n with replacement. std::uniform_int_distribution is not used: its numbers differ between libraries.
class Draw {
 public:
  Draw(uint64_t seed, std::size_t n) : generator_(seed), n_(n) {}

  // How often each index was drawn.
  void all(std::vector<int>& drawn) {
    std::fill(drawn.begin(), drawn.end(), 0);
    for (uint64_t i = 0; i < n_; ++i) ++drawn[(generator_() >> 32) * n_ >> 32];  // n below 2^32
  }

 private:
  std::mt19937_64 generator_;
  uint64_t n_;
};

// Medians of resamples. The resamples are only counted, not created: if the order of the samples is known, it is enough
// to know how often each was drawn.
class Resampled {
 public:
  explicit Resampled(const std::vector<double>& samples) : samples_(samples), order_(samples.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return samples[a] < samples[b]; });
  }

  // drawn[i]: how often samples[i] was drawn; the sum is the number of samples.
  double median(const std::vector<int>& drawn) const {
    const int size = static_cast<int>(order_.size());
    std::size_t at = 0;
    int upto = drawn[order_[0]];  // number drawn up to order_[at]
    const auto drawn_at = [&](int place) {
      while (upto < place) upto += drawn[order_[++at]];
      return samples_[order_[at]];
    };
    const double middle = drawn_at((size + 1) / 2);
    return size % 2 == 1 ? middle : (middle + drawn_at(size / 2 + 1)) / 2;
  }

 private:
  const std::vector<double>& samples_;
  std::vector<std::size_t> order_;
};

struct Interval {
  double low = 0;
  double high = kInfinity;
  double p = 1;
};

Interval wider(const Interval& a, const Interval& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high), std::max(a.p, b.p)};
}

// ratios: of each resample, the ratio of its two medians.
Interval percentile_interval(std::vector<double> ratios) {
  const auto count = static_cast<double>(ratios.size());
  const auto below = std::count_if(ratios.begin(), ratios.end(), [](double ratio) { return ratio < 1; });
  const auto above = std::count_if(ratios.begin(), ratios.end(), [](double ratio) { return ratio > 1; });
  const double tail = (count - static_cast<double>(std::max(below, above)) + 1) / (count + 1);
  const auto at = static_cast<std::ptrdiff_t>(kAlpha / 2 * count);
  const auto low = ratios.begin() + at, high = ratios.end() - 1 - at;
  std::nth_element(ratios.begin(), low, ratios.end());
  std::nth_element(low + 1, high, ratios.end());
  return {*low, *high, std::min(1.0, 2 * tail)};
}

// Around a mean of logarithms, with its standard error.
Interval student_interval(double mean, double error, double freedom) {
  if (!(freedom >= 1)) return {};
  if (error == 0) return {std::exp(mean), std::exp(mean), mean == 0 ? 1.0 : 0.0};
  const boost::math::students_t_distribution<double> student(freedom);
  const double reach = boost::math::quantile(boost::math::complement(student, kAlpha / 2)) * error;
  const double p = 2 * boost::math::cdf(boost::math::complement(student, std::abs(mean) / error));
  return {std::exp(mean - reach), std::exp(mean + reach), p};
}

struct Moments {
  double mean = 0;
  double error2 = 0;  // squared standard error of the mean
  double count = 0;
};

Moments moments_of(const std::vector<double>& samples) {
  Moments moments;
  moments.count = static_cast<double>(samples.size());
  moments.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / moments.count;
  double squares = 0;
  for (const double sample : samples) squares += (sample - moments.mean) * (sample - moments.mean);
  if (moments.count > 1) moments.error2 = squares / (moments.count - 1) / moments.count;
  return moments;
}

std::vector<double> logs(const std::vector<double>& samples) {
  std::vector<double> result;
  for (const double sample : samples) result.push_back(std::log(sample));
  return result;
}

// Welch and Satterthwaite.
Interval welch_interval(const std::vector<double>& times, const std::vector<double>& base) {
  if (times.size() < 2 || base.size() < 2) return {};
  const Moments a = moments_of(logs(times)), b = moments_of(logs(base));
  const double error2 = a.error2 + b.error2;
  const double freedom =
      error2 == 0 ? a.count + b.count - 2
                  : error2 * error2 / (a.error2 * a.error2 / (a.count - 1) + b.error2 * b.error2 / (b.count - 1));
  return student_interval(a.mean - b.mean, std::sqrt(error2), freedom);
}

Ratio with(double value, const Interval& interval) {
  return {value, interval.low, interval.high, interval.p};
}

}  // namespace

Ratio ratio_by_rounds(const std::vector<double>& times, const std::vector<double>& base, uint64_t seed) {
  const double value = median(times) / median(base);
  const std::size_t rounds = times.size();
  if (rounds < 2) return with(value, {});
  Draw draw(seed, rounds);
  const Resampled some_times(times), some_base(base);
  std::vector<int> drawn(rounds);
  std::vector<double> ratios(kResamples);
  for (double& ratio : ratios) {
    draw.all(drawn);
    ratio = some_times.median(drawn) / some_base.median(drawn);
  }
  std::vector<double> differences;
  for (std::size_t i = 0; i < rounds; ++i) differences.push_back(std::log(times[i] / base[i]));
  const Moments moments = moments_of(differences);
  const Interval student = student_interval(moments.mean, std::sqrt(moments.error2), moments.count - 1);
  return with(value, wider(percentile_interval(std::move(ratios)), student));
}

Ratio ratio_of_groups(const std::vector<double>& times, const std::vector<double>& base, uint64_t seed) {
  const double value = median(times) / median(base);
  if (times.size() < 2 || base.size() < 2) return with(value, {});
  Draw draw_time(seed, times.size()), draw_base(~seed, base.size());
  const Resampled some_times(times), some_base(base);
  std::vector<int> drawn_times(times.size()), drawn_base(base.size());
  std::vector<double> ratios(kResamples);
  for (double& ratio : ratios) {
    draw_time.all(drawn_times);
    draw_base.all(drawn_base);
    ratio = some_times.median(drawn_times) / some_base.median(drawn_base);
  }
  return with(value, wider(percentile_interval(std::move(ratios)), welch_interval(times, base)));
}

std::vector<double> holm(const std::vector<double>& p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
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
