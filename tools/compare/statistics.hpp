// compare: `ddprun compare` and `ddprun sweep`: which runs, in which order, what their figures say, and how sure that
// is. This file: the statistics. Pure functions of samples and a seed; torch-free, no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::compare {

// How the times of one variant relate to those of another: median / median, over whole runs. Steps of one run are no
// samples of their own: they share what happened to their process, so that an interval over steps is far too narrow.
struct Ratio {
  double value = 1;
  // The 95 % interval. Of a single run each there is none: 0 and infinity.
  double low = 0;
  double high = 0;
  // The level at which the interval would just reach 1: below 0.05 the two differ.
  double p = 1;

  double half_width() const { return (high - low) / 2; }
};

// times[i] and base[i] were measured in the same round, side by side; both have the same size, at least 1, all above 0.
//
// The interval is the wider one, at each end, of two:
//  - the bootstrap's percentile interval of the ratio of medians (Efron and Tibshirani 1993, chapter 13), drawn over
//    rounds: a round keeps its two runs together, so that what drifts over the minutes divides out;
//  - Student's interval of the mean log ratio of a round.
// Alone, the bootstrap says "different" of equals too often for so few runs (6 to 7 % of the time at 5 rounds, 24 % at
// 3; Hesterberg 2015, section 4, tells why), and the expanded percentile interval proposed there finds less than this
// one. Together they hold 5 % for normal, lognormal, heavy-tailed and drifting times: tests/tools/compare/test_statistics.cpp
// measures that, and how small a difference so many rounds find. Same seed, same interval.
Ratio ratio_by_rounds(const std::vector<double>& times, const std::vector<double>& base, uint64_t seed);

// For runs that were not made side by side, in any number: the bootstrap draws from each on its own, and Student's
// interval is Welch's (1947). What changed on the machine in between is not in it.
Ratio ratio_of_groups(const std::vector<double>& times, const std::vector<double>& base, uint64_t seed);

// Holm's (1979) adjustment: with several comparisons, one of many equals would soon look different by chance. Each p
// comes back as large as it is among all of them; in the order given.
std::vector<double> holm(const std::vector<double>& p);

// Which of two times is the shorter, as far as the runs can tell.
enum class Verdict { faster, slower, unclear };
// By the adjusted p, at 5 %.
Verdict verdict_of(const Ratio& ratio, double adjusted_p);
// "faster", "slower", "no difference that this number of runs can show"
std::string text(Verdict verdict);

double median(const std::vector<double>& samples);

}  // namespace ddprun::compare
