#include "compare/statistics.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "record/statistics.hpp"

namespace ddprun::compare {
namespace {

constexpr double kAlpha = 0.05;
constexpr int kResamples = 4000;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Draws indices below n. Not std::uniform_int_distribution, whose numbers differ from library to library.
class Draw {
 public:
  Draw(uint64_t seed, std::size_t n) : generator_(seed), n_(n) {}
  std::size_t operator()() { return static_cast<std::size_t>((generator_() >> 32) * n_ >> 32); }  // n below 2^32

 private:
  std::mt19937_64 generator_;
  uint64_t n_;
};

// By nth_element, in place: a resample is thrown away anyway.
double median_in_place(std::vector<double>& samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  if (samples.size() % 2 == 1) return *middle;
  return (*std::max_element(samples.begin(), middle) + *middle) / 2;
}

struct Interval {
  double low = 0;
  double high = kInfinity;
  double p = 1;
};

Interval wider(const Interval& a, const Interval& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high), std::max(a.p, b.p)};
}

// Of resampled ratios, which are sorted here.
Interval percentile_interval(std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end());
  const auto count = static_cast<double>(ratios.size());
  const auto below = static_cast<double>(std::lower_bound(ratios.begin(), ratios.end(), 1.0) - ratios.begin());
  const auto above = static_cast<double>(ratios.end() - std::upper_bound(ratios.begin(), ratios.end(), 1.0));
  const double tail = (count - std::max(below, above) + 1) / (count + 1);
  const auto at = static_cast<std::size_t>(kAlpha / 2 * count);
  return {ratios[at], ratios[ratios.size() - 1 - at], std::min(1.0, 2 * tail)};
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

double median(const std::vector<double>& samples) {
  return record::quantile(samples, 0.5);
}

Ratio ratio_by_rounds(const std::vector<double>& times, const std::vector<double>& base, uint64_t seed) {
  const double value = median(times) / median(base);
  const std::size_t rounds = times.size();
  if (rounds < 2) return with(value, {});
  Draw draw(seed, rounds);
  std::vector<double> some_times(rounds), some_base(rounds), ratios(kResamples);
  for (double& ratio : ratios) {
    for (std::size_t i = 0; i < rounds; ++i) {
      const std::size_t round = draw();
      some_times[i] = times[round];
      some_base[i] = base[round];
    }
    ratio = median_in_place(some_times) / median_in_place(some_base);
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
  std::vector<double> some_times(times.size()), some_base(base.size()), ratios(kResamples);
  for (double& ratio : ratios) {
    for (double& time : some_times) time = times[draw_time()];
    for (double& time : some_base) time = base[draw_base()];
    ratio = median_in_place(some_times) / median_in_place(some_base);
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
    case Verdict::unclear: break;
  }
  return "no difference that this number of runs can show";
}

}  // namespace ddprun::compare
