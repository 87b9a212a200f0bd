#include <doctest/doctest.h>

#include "record/recorder.hpp"
#include "support/error_of.hpp"
#include "support/text.hpp"
#include "testing/temp_dir.hpp"
#include "tools/compare/comparison.hpp"

using namespace ddprun;
using namespace ddprun::compare;
using ddprun::testing::contains;
using ddprun::testing::error_of;
using ddprun::testing::TempDir;

namespace {

// A run folder with four steps.
std::string write_run(const TempDir& dir, const std::string& name, const std::string& algorithm, double step) {
  std::filesystem::create_directory(dir.path() / name);
  config::Experiment experiment;
  experiment.experiment.name = "exp";
  experiment.experiment.output = dir.path() / name;  // differs between runs without an effect
  experiment.model.name = experiment.data.name = "linear";
  experiment.comm.algorithm = algorithm;
  experiment.train.epochs = 1;
  dir.write(name + "/config.toml", config::to_toml(experiment));
  dir.write(name + "/environment.json", "{}");
  dir.write(name + "/epochs.jsonl", "");
  dir.write(name + "/summary.json", R"({"world": 1})");
  std::string lines;
  for (int64_t number = 1; number <= 4; ++number) {
    record::StepRecord record;
    record.step = number;
    record.samples = 8;
    record.loss = 1;
    record.total = step;
    lines += record::line_of(record) + '\n';
  }
  dir.write(name + "/steps-rank0.jsonl", lines);
  return dir.path() / name;
}

}  // namespace

TEST_CASE("listed runs with the same configuration are one variant") {
  const TempDir dir;
  const std::string a = write_run(dir, "a", "ring", 1), b = write_run(dir, "b", "tree", 2),
                    c = write_run(dir, "c", "ring", 3);
  const auto members = members_of_folders({a, b, c}, 1);
  REQUIRE(members.size() == 2);
  CHECK(members[0].dirs == std::vector<std::string>{a, c});
  CHECK(members[0].runs[1].step == doctest::Approx(3));
  CHECK(members[0].runs[0].step_times.size() == 3);
  CHECK(members[0].variant.name == "a");  // both are "exp": the folders distinguish them
  CHECK(members[1].variant.name == "b");
  CHECK(contains(error_of([&] { members_of_folders({a, c}, 1); }), "2: compare: all runs have the same configuration"));
}

TEST_CASE("runs of a group must have the same configuration, and two groups are needed") {
  const TempDir dir;
  const std::string a = write_run(dir, "a", "ring", 1), b = write_run(dir, "b", "tree", 2);
  CHECK(members_of_groups({{a}, {b}}, 0).size() == 2);
  CHECK(members_of_groups({{a}, {a}}, 0).size() == 2);  // before and after a change of the program
  CHECK(contains(error_of([&] { members_of_groups({{a, b}, {b}}, 0); }), "comm.algorithm differs from that in"));
  CHECK(contains(error_of([&] { members_of_groups({{a, b}}, 0); }), "comm.algorithm differs from that in"));
  CHECK(contains(error_of([&] { members_of_groups({{a}}, 0); }), "2: --runs: give it once for each variant"));
  CHECK(contains(error_of([&] { members_of_groups({{a}, {b}}, 4); }), "4 steps, and 4 are left out"));
}
