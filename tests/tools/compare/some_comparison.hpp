// Comparisons with figures that a test chooses.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/comparison.hpp"

namespace ddprun::compare {

inline Figures some_figures(double step) {
  Figures figures;
  figures.step = step;
  figures.total_time = 100 * step;
  figures.throughput = 128 / step;
  figures.split = {0.1 * step, 0.3 * step, 0.4 * step, 0.1 * step, 0.05 * step, 0.05 * step};
  figures.step_times = {step, 1.1 * step, 0.9 * step};
  figures.losses = {2, 1, 0.5};
  figures.samples = 1280;
  return figures;
}

inline Member some_member(const std::string& name, const std::vector<double>& steps) {
  Member member;
  member.variant.name = name;
  member.variant.loaded.experiment.strategy.kind = name == "single" ? "single" : "ddp";
  member.variant.loaded.experiment.launch.nproc = 2;
  for (const double step : steps) {
    member.runs.push_back(some_figures(step));
    member.dirs.push_back("runs/" + name);
  }
  return member;
}

// b is 10 % slower than a, c is a with noise, and a has a twin.
inline Comparison some_comparison() {
  Comparison comparison;
  comparison.members = {
      some_member("a", {1.00, 1.01, 0.99, 1.00, 1.01}), some_member("a (twin)", {1.01, 0.99, 1.00, 1.00, 1.00}),
      some_member("b", {1.10, 1.12, 1.09, 1.10, 1.11}), some_member("c", {0.98, 1.03, 1.00, 0.99, 1.02})};
  comparison.members[1].twin = true;
  comparison.members[2].variant.loaded.experiment.comm.algorithm = "tree";
  comparison.environment = {{"ddprun", "0.1.0"}, {"host", "<here>"}};
  return comparison;
}

inline void set_other_cpu(Comparison& comparison, double share) {
  for (Member& member : comparison.members) {
    for (Figures& run : member.runs) run.other_cpu = share;
  }
}

}  // namespace ddprun::compare
