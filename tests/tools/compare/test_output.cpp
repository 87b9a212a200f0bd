// What compare prints, in compare.txt.
#include <doctest/doctest.h>

#include <cmath>

#include "support/golden.hpp"
#include "tools/compare/output.hpp"
#include "tools/compare/some_comparison.hpp"

using namespace ddprun::compare;

namespace {

class Printed {
 public:
  void title(const std::string& text) { text_ += (text_.empty() ? "# " : "\n# ") + text + "\n"; }
  void line(const std::string& text) { text_ += text + "\n"; }
  void lines(const std::vector<std::string>& all) {
    for (const std::string& text : all) line(text);
  }
  void comparison(const std::string& name, Comparison comparison, const std::vector<std::string>& gates = {}) {
    title(name);
    std::vector<Gate> parsed;
    for (const std::string& gate : gates) parsed.push_back(parse_gate(gate, names_of(comparison.members)));
    judge(comparison, parsed);
    text_ += text(comparison);
  }
  const std::string& text() const { return text_; }

 private:
  static std::string text(const Comparison& comparison) { return ddprun::compare::text(comparison); }
  std::string text_;
};

void add_comparisons(Printed& out) {
  out.comparison("a twin and noise", some_comparison(), {"b/a <= 1.05", "b/a <= 1.2", "3/1 <= 1"});
  Comparison comparison = some_comparison();
  set_other_cpu(comparison, 0.3);
  comparison.members[3].runs[0].losses[1] = NAN;
  comparison.unfair = {"data.name: \"a\" in a, \"b\" in b"};
  out.comparison("other programs, and other work", comparison, {"b/a <= 1.2", "b/a <= 9"});
  comparison = {};
  comparison.members = {some_member("a", {1}), some_member("b", {2})};
  out.comparison("one run of each", comparison, {"b/a <= 1.5"});
  comparison = {};
  comparison.interleaved = false;
  comparison.members = {some_member("old", {1, 1.01, 0.99}), some_member("new", {2, 2.01, 1.99})};
  for (Figures& run : comparison.members[0].runs) run.load = 0.5;
  for (Figures& run : comparison.members[1].runs) run.load = 3.25;
  comparison.members[1].runs[0].load = 2.5;
  out.comparison("earlier runs of one configuration", comparison, {"new/old >= 1.5"});
  comparison = {};
  comparison.members = {some_member("single", {1, 1.01}), some_member("dp", {0.25, 0.252})};
  comparison.members[1].variant.loaded.experiment.strategy.kind = "dp";
  comparison.members[1].variant.loaded.experiment.strategy.devices = 3;
  for (Figures& run : comparison.members[0].runs) {
    run.split.other += run.split.comm;
    run.split.comm = 0;
  }
  for (Figures& run : comparison.members[1].runs) {  // twice the samples in a step
    run.samples *= 2;
    run.throughput *= 2;
  }
  comparison.members[1].variant.loaded.experiment.data.batch_size *= 2;
  out.comparison("one worker and three, with other batches", comparison);
}

void add_sentences(Printed& out) {
  out.title("a variant against the first");
  Comparison comparison = some_comparison();
  judge(comparison, {});
  Against against = comparison.against[1];
  for (const auto& [verdict, ratio] : {std::pair{Verdict::faster, 0.186},
                                       {Verdict::faster, 0.8},
                                       {Verdict::slower, 1.1},
                                       {Verdict::slower, 4.0},
                                       {Verdict::unclear, 1.05}}) {
    against.verdict = verdict;
    against.ratio = {ratio, ratio - 0.01, ratio + 0.01, 0.03};
    out.line(sentence(comparison, against));
  }
  comparison.interleaved = false;
  comparison.members[2].runs.resize(2);
  out.line(sentence(comparison, against));

  out.title("the largest part of a step");
  const Split waits{0.62, 0.1, 0.1, 0.03, 0.05, 0.1}, sends{0, 0.02, 0.03, 0.95, 0, 0};
  for (const char* key : {"comm.algorithm", "data.workers", "optimizer.eps"}) {
    out.line(ceiling_of(waits, lever_of({key})));
  }
  for (const Split& split : {sends, {0, 0.5, 0.5, 0, 0, 0}, {0, 0.5, 0.5, 1e-5, 0, 0}}) {
    out.line(ceiling_of(split, lever_of({"comm.backend"})));
  }
  out.line(difference_of(sends, {0, 0.03, 0.03, 0.44, 0, 0.5}));
}

void add_parity(Printed& out) {
  const Parting parting{2, "b", "gradient", 0.01};
  out.title("a variant by itself");
  VariantParity one;
  one.steps = 2;
  one.ranks = 2;
  out.lines(sentences(one));
  one.repeats = true;
  out.lines(sentences(one));
  one.ranks_part = one.runs_part = parting;
  one.repeats = false;
  out.lines(sentences(one));

  const auto add = [&](const char* title, PairParity parity, bool float32 = true) {
    out.title(title);
    parity.float32 = float32;
    out.lines(sentences(parity));
  };
  add("no step in common", pair_parity({}, {}, {1}, {}));
  add("equal losses", pair_parity({}, {}, {1, 2}, {1, 2}));
  PairParity tensors = pair_parity({}, {}, {2, 1.5, 1.2}, {2, 1.6, 1.2 * (1 + 1e-6)});
  tensors.tensor_steps = 2;
  tensors.first_tensor = parting;
  tensors.largest_distance = 0.02;
  add("other gradients in step 2", tensors);
  add("a loss that is not finite, after step 101", pair_parity({}, {}, {1, 2}, {1, NAN}, 101));
  const auto first = [](double apart) { return pair_parity({}, {}, {1, 1}, {1 + apart, 1}); };
  add("step 1, rounding", first(1e-7));
  add("step 1, more than rounding", first(1e-3));
  add("step 1, 16-bit numbers", first(1e-3), false);
}

}  // namespace

TEST_CASE("what compare prints in each situation") {
  Printed out;
  add_comparisons(out);
  add_sentences(out);
  add_parity(out);
  ddprun::testing::check_golden("tools/compare/compare.txt", out.text());
}
