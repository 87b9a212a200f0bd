// A comparison as data: the variants, their measurements, gates and the conclusions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/compare/compare.hpp"
#include "tools/compare/figures.hpp"
#include "tools/compare/parity.hpp"
#include "tools/compare/statistics.hpp"
#include "tools/compare/variant.hpp"

namespace ddprun::compare {

// `--gate 'b/a <= 1.02'`: a pass or fail result for scripts. The ratio of the step times of two variants, and its
// limit.
struct Gate {
  std::string text;
  std::size_t over = 0, under = 0;  // variants
  bool at_most = true;              // else at least
  double bound = 1;
};

// "b/a <= 1.02", "2/1 < 0.95", and ">=" and ">" likewise; variants by name or by number from 1. Throws Error(usage)
// with what was expected.
Gate parse_gate(const std::string& text, const std::vector<std::string>& names);

// Holds if the whole 95 % interval is within the limit: the runs must show it, not only fail to refute it. So a gate
// never passes because there are too few runs.
bool holds(const Gate& gate, const Ratio& ratio);

// One variant with its runs. If the runs were interleaved, runs[i] is that of round i.
struct Member {
  Variant variant;
  bool twin = false;              // a copy of the first variant (A/A)
  std::vector<std::string> dirs;  // run folders
  std::vector<Figures> runs;
  Typical typical;
  std::vector<std::string> parity_dirs;
  std::vector<ParityRun> parity_runs;
  VariantParity parity;
};

// One variant against the first.
struct Against {
  std::size_t member = 1;
  Ratio ratio;            // of the average times (measure_of()); below 1: faster than the first
  double adjusted_p = 1;  // by Holm, over all comparisons except with the twin
  Verdict verdict = Verdict::unclear;
  PairParity parity;
};

struct GateResult {
  Gate gate;
  Ratio ratio;
  std::string words;  // "b is 5.4 times as fast as a"
  bool held = false;
  // The share of a machine's CPU time that other programs used, if the factor between ratio and bound can come from it:
  // then nothing is decided. Else 0.
  double disturbance = 0;
};

struct Comparison {
  std::vector<Member> members{};
  bool interleaved = true;  // false: earlier runs
  int64_t warmup_steps = 0;
  uint64_t seed = 0;                        // of the bootstrap
  std::vector<std::string> differing{};     // keys
  std::vector<std::string> unfair{};        // unfair_differences(), allowed by --allow-different
  std::vector<Against> against{};           // all members except the first
  std::vector<std::string> loss_repeats{};  // variants whose runs had bitwise equal losses
  std::vector<std::string> loss_varies{};   // variants whose runs had not
  std::vector<GateResult> gates{};
  std::string ceiling{};                             // why the slower variant is not faster
  std::map<std::string, std::string> environment{};  // of the first run
};

// Refuses variants that do different work, unless that is allowed (variant.hpp); sets `unfair`.
void check_fairness(Comparison& comparison, bool allow_different);

// Adds a run, of which the member's variant says what it is like: the same as its other runs. Throws Error(usage).
void add_run(Member& member, const tools::Run& run, const Variant& variant, int64_t warmup_steps);

// What is compared: "step", or "sample" if the global batches differ. A step of twice the samples may take longer.
std::string measure_of(const Comparison& comparison);

// The ratio of two members' times for a step, or for a sample: paired by round if the runs were interleaved, else
// unpaired.
Ratio ratio_of(const Comparison& comparison, std::size_t over, std::size_t under);

// Computes everything else from the members' runs: typical figures, ratios, verdicts, parity, ceiling, gates.
void judge(Comparison& comparison, const std::vector<Gate>& gates);

// The difference in speed, which is the inverse of the ratio of times:
// "ring is 4.0 % slower than tree (ratio of the times for a step 1.042, 95 % interval 1.013 to 1.071, 5 runs each)."
// "shm is 5.4 times as fast as gloo (ratio of the times for a step 0.186, ...)."
std::string sentence(const Comparison& comparison, const Against& against);

std::vector<std::string> names_of(const std::vector<Member>& members);

// One member for each group of run folders (Request::runs). If folders are given without groups, one member for each
// configuration among them. The runs of one group must have the same configuration, except for experiment.*. A member
// has the name of its experiment, or of its folder if names are not unique. Throws Error(usage).
std::vector<Member> members_of_groups(const std::vector<std::vector<std::string>>& groups, int64_t warmup_steps);
std::vector<Member> members_of_folders(const std::vector<std::string>& folders, int64_t warmup_steps);

}  // namespace ddprun::compare
