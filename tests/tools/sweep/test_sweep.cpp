#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "support/error_of.hpp"
#include "support/text.hpp"
#include "tools/compare/variant.hpp"
#include "tools/sweep/sweep.hpp"

using namespace ddprun::sweep;
using ddprun::compare::Trial;
using ddprun::compare::trials_of;
using ddprun::testing::contains;
using ddprun::testing::error_of;

TEST_CASE("the grid has every combination, the last key fastest") {
  const auto trials = trials_of({"a.b=1,2", "c.d=x,y"}, std::nullopt, 0);
  CHECK(trials == std::vector<Trial>{{"a.b=1", "c.d=x"}, {"a.b=1", "c.d=y"}, {"a.b=2", "c.d=x"}, {"a.b=2", "c.d=y"}});
}

TEST_CASE("random values lie in their range, differ, and are the same for the same seed") {
  const std::vector<std::string> varied = {"optimizer.lr=0.001..0.1", "data.batch_size=16..256",
                                           "optimizer.name=sgd,adam"};
  const auto trials = trials_of(varied, 50, 1);
  REQUIRE(trials.size() == 50);
  int small = 0;
  for (const Trial& trial : trials) {
    const double lr = std::stod(trial[0].substr(13));
    CHECK(lr >= 0.001);
    CHECK(lr <= 0.1);
    small += lr < 0.01;
    CHECK(trial[1].find_first_not_of("0123456789", 16) == std::string::npos);
    CHECK((trial[2] == "optimizer.name=sgd" || trial[2] == "optimizer.name=adam"));
  }
  CHECK(small > 12);  // half of them: the range has two powers of ten
  CHECK(small < 38);
  CHECK(std::set<Trial>(trials.begin(), trials.end()).size() == 50);
  CHECK(trials_of(varied, 50, 1) == trials);
  CHECK(trials_of(varied, 50, 2) != trials);
  CHECK(trials_of({"a.b=1,2"}, 10, 1).size() == 2);
}

TEST_CASE("rounding keeps random values in their range") {
  for (const Trial& trial : trials_of({"optimizer.momentum=0.9991..0.9999"}, 50, 1)) {
    const double momentum = std::stod(trial[0].substr(19));
    CHECK(momentum >= 0.9991);
    CHECK(momentum <= 0.9999);
  }
}

TEST_CASE("invalid ranges are refused") {
  const auto refusal_of = [](const std::string& vary, std::optional<int64_t> draws) {
    return error_of([&] { trials_of({vary}, draws, 0); });
  };
  CHECK(contains(refusal_of("a.b=1..2", std::nullopt), "2: --vary a.b=1..2: a range needs --random N"));
  CHECK(contains(refusal_of("a.b=0..2", 3), "0 < LOW < HIGH"));
  CHECK(contains(refusal_of("a.b=2..1", 3), "0 < LOW < HIGH"));
  CHECK(contains(refusal_of("a.b=1..2,5", 3), "a range must be the only value"));
  CHECK(trials_of({"model.name=../x.so"}, 1, 0)[0][0] == "model.name=../x.so");
}

TEST_CASE("a trial is stopped by the median of the finished trials") {
  const std::vector<std::vector<double>> finished = {{1.0, 0.5}, {2.0, 0.7}, {3.0, 0.6}};
  CHECK_FALSE(is_loser({}, finished, true));
  CHECK(is_loser({2.1}, finished, true));
  CHECK_FALSE(is_loser({1.9}, finished, true));
  CHECK(is_loser({0.1, 0.65}, finished, true));
  CHECK_FALSE(is_loser({9, 0.59}, finished, true));
  CHECK(is_loser({0.1}, finished, false));
  CHECK_FALSE(is_loser({9}, finished, false));
  CHECK_FALSE(is_loser({9, 9, 9}, finished, true));  // no trial has finished this epoch
  CHECK_FALSE(is_loser({9}, {{1.0}}, true));         // one trial is too few for a median
}

TEST_CASE("results are sorted: finished, stopped, failed; best first") {
  const auto trial = [](const char* name, Outcome outcome, double loss) {
    TrialResult result;
    result.variant.name = name;
    result.outcome = outcome;
    result.epochs.resize(2);
    result.epochs.back().test_loss = loss;
    result.epochs.back().validation_accuracy = loss;
    result.throughput = loss;
    return result;
  };
  std::vector<TrialResult> results = {trial("d", Outcome::failed, NAN), trial("c", Outcome::stopped, 0.1),
                                      trial("b", Outcome::finished, 0.4), trial("a", Outcome::finished, 0.3),
                                      trial("n", Outcome::finished, NAN)};
  const auto order = [&](const char* by) {
    sort_results(results, by);
    std::string names;
    for (const TrialResult& result : results) names += result.variant.name;
    return names;
  };
  CHECK(order("test.loss") == "abncd");
  CHECK(order("throughput") == "bancd");
  CHECK(order("validation.accuracy") == "bancd");
}

TEST_CASE("the best trial has a command line that repeats it, and losses have enough digits to be ranked") {
  Request request;
  request.by = "test.loss";
  request.vary = {"optimizer.lr=0.00123456789,0.1"};
  TrialResult best, next;
  best.variant.name = "lr=0.00123456789";
  best.variant.file = "my exp.toml";
  best.variant.overrides = {"train.epochs=2", "optimizer.lr=0.00123456789"};
  best.values = {"0.00123456789"};
  best.epochs.resize(1);
  best.epochs[0].epoch = 1;
  best.epochs[0].test_loss = 1.234e-6;
  next.values = {"0.1"};
  next.epochs = best.epochs;
  next.epochs[0].test_loss = 1.235e-6;
  const auto lines = about_best(request, {best, next});
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "Best by test.loss: lr=0.00123456789, finished after epoch 1, test loss 1.234e-06.");
  CHECK(lines[1] == "Again: ddprun --config 'my exp.toml' --set train.epochs=2 --set optimizer.lr=0.00123456789");
  CHECK(lines[2].starts_with("The test set chose it, so its results are better than those on new data; "));
  CHECK(contains(lines[3], "one run"));
  request.by = "validation.loss";
  CHECK(about_best(request, {best, next}).size() == 3);
  request.by = "test.loss";
  const auto rows = sweep_table(request, {best, next}).rows();
  CHECK(rows[0][0] == "0.00123456789");
  CHECK(rows[0][1] != rows[1][1]);
  best.outcome = Outcome::failed;
  CHECK(about_best(request, {best, next}).empty());
}

TEST_CASE("a sweep is checked before anything starts") {
  Request request;
  request.config = "exp.toml";
  request.vary = {"optimizer.lr=0.1,0.2"};
  request.by = "test.los";
  CHECK(error_of([&] { run(request); }) ==
        "2: --by test.los: expected \"validation.loss\", \"validation.accuracy\", \"test.loss\", \"test.accuracy\" or "
        "\"throughput\" (did you mean \"test.loss\"?)");
  request.by = "";
  request.random = 0;
  CHECK(contains(error_of([&] { run(request); }), "2: --random: expected at least 1"));
  request.vary.clear();
  CHECK(contains(error_of([&] { run(request); }), "2: sweep: expected --config FILE and --vary"));
}
