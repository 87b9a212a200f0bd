#include "tools/compare/measure.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/console/units.hpp"
#include "tools/compare/order.hpp"

namespace ddprun::compare {
namespace {

constexpr int64_t kParityRuns = 2;  // of each variant, to compare their bits

class Rounds {
 public:
  Rounds(Runner& runner, const Request& request, Comparison& comparison)
      : runner_(runner), request_(request), comparison_(comparison) {}

  void run() {
    expect(request_.repeats);
    for (int64_t round = 0; round < request_.repeats; ++round) run(round);
    if (!request_.precision) return;
    for (int64_t round = request_.repeats; round < request_.max_repeats && too_wide(); ++round) {
      expect(round + 1);
      run(round);
    }
  }

 private:
  void expect(int64_t rounds) {
    rounds_ = rounds;
    const auto members = static_cast<int64_t>(comparison_.members.size());
    const auto twins = std::count_if(comparison_.members.begin(), comparison_.members.end(),
                                     [](const Member& member) { return member.twin; });
    runner_.expect(rounds * members + (request_.parity_steps > 0 ? kParityRuns * (members - twins) : 0));
  }

  void run(int64_t round) {
    for (const std::size_t at : turn_order(comparison_.members.size(), static_cast<std::size_t>(round))) {
      Member& member = comparison_.members[at];
      const std::string label = fmt::format("round {} of {}: {}", round + 1, rounds_, member.variant.name);
      const RunEnd end = runner_.must_run(member.variant, label);
      const record::Run run = record::read_run(end.dir);
      if (comparison_.environment.empty()) comparison_.environment = run.environment;
      member.dirs.push_back(run.dir);
      member.runs.push_back(figures_of(run, request_.warmup_steps));
      member.runs.back().other_cpu = end.other_cpu;
      runner_.print(fmt::format("{}: {} a step", label, console::human_time(member.runs.back().step)));
    }
  }

  bool too_wide() {
    for (std::size_t i = 1; i < comparison_.members.size(); ++i) {
      const Ratio ratio = ratio_of(comparison_, i, 0);
      if (!(ratio.half_width() <= *request_.precision * ratio.value)) return true;
    }
    return false;
  }

  Runner& runner_;
  const Request& request_;
  Comparison& comparison_;
  int64_t rounds_ = 0;
};

// The variant with this many steps, or with one more than its learning rate warm-up if that is longer.
Variant short_variant(Variant variant, int64_t steps) {
  steps = std::max(steps, variant.loaded.experiment.train.warmup + 1);
  variant.overrides = without_length(variant.overrides);
  variant.overrides.push_back(fmt::format("train.steps={}", steps));
  return variant;
}

}  // namespace

void measure(Runner& runner, const Request& request, Comparison& comparison) {
  Rounds(runner, request, comparison).run();
}

void measure_parity(Runner& runner, const Request& request, Comparison& comparison) {
  for (Member& member : comparison.members) {
    if (member.twin) continue;
    const Variant variant = short_variant(member.variant, request.parity_steps);
    for (int64_t number = 1; number <= kParityRuns; ++number) {
      const std::string label = fmt::format("parity run {} of {}: {}", number, kParityRuns, member.variant.name);
      const std::vector<std::string> overrides = {fmt::format("log.parity_steps={}", request.parity_steps),
                                                  "train.evaluate=false"};
      const std::string dir = runner.must_run(variant, label, overrides).dir;
      member.parity_dirs.push_back(dir);
      member.parity_runs.push_back(record::read_parity(dir, static_cast<int>(record::read_summary(dir).world)));
      runner.print(label);
    }
  }
}

}  // namespace ddprun::compare
