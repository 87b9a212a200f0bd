// compare: `ddprun compare`: the order of runs, and the statistics of their figures. This file: the
// statistics, as pure functions of samples and a seed; torch-free, no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace ddprun::compare {

// The step times of one variant relative to another: median / median, over whole runs. Steps of one run are not
// independent samples: they share their process, so an interval over steps would be far too narrow.
struct Ratio {
  double value = 1;
  // The 95 % interval. With a single run each: 0 and infinity.
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  // The level at which the interval just reaches 1; below 0.05 the two differ.
  double p = 1;

  double half_width() const { return (high - low) / 2; }
};

// times[i] and base[i] come from the same round. Both have the same size, at least 1; all values are above 0.
//
// docs/comparing.md has the two methods. With so few runs, the bootstrap by itself reports equal variants as different
// too often (6 to 7 % of the time at 5 rounds, 24 % at 3), and the expanded percentile interval (Hesterberg 2015,
// section 4) detects fewer differences than this one. The same seed gives the same interval.
Ratio ratio_by_rounds(const std::vector<double>& times, const std::vector<double>& base, uint64_t seed);

// For runs that were not paired in rounds, in any number: the bootstrap draws from each group independently, and
// Student's interval is Welch's (1947). It does not include changes of the machine between the groups.
Ratio ratio_of_groups(const std::vector<double>& times, const std::vector<double>& base, uint64_t seed);

// Holm's (1979) adjustment: among many comparisons of equals, one soon looks different by chance. Returns each adjusted
// p, in the given order.
std::vector<double> holm(const std::vector<double>& p);

// Which of two times is shorter, as far as the runs can show.
enum class Verdict {
  faster,
  slower,
  unclear,
  single_run,  // of one of them there is one run, so nothing says how much runs differ by chance
  disturbed,   // other programs used so much of the machine that it can explain the difference
};
// By the adjusted p, at 5 %; never `single_run` or `disturbed`.
Verdict verdict_of(const Ratio& ratio, double adjusted_p);
// Whether the runs show which of the two is slower.
inline bool is_decided(Verdict verdict) {
  return verdict == Verdict::faster || verdict == Verdict::slower;
}
// "faster", "slower", "no difference that this number of runs can show", "no verdict from a single run", "no verdict,
// because of other programs"
std::string text(Verdict verdict);

// The order of `variants` variants in a round (from 0). Two variants: AB BA BA AB, so that a steady drift of the
// machine affects both alike. More: a row of a Williams (1949) square, in which each variant has each place and follows
// each other one equally often; the next round uses the same row in reverse. So 2 * variants rounds are balanced, and
// any two rounds cancel a steady drift.
std::vector<std::size_t> turn_order(std::size_t variants, std::size_t round);

}  // namespace ddprun::compare
