// Data set plugins from a user's view: listed, selected, refused, trained on.
#include <doctest/doctest.h>

#include <algorithm>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"
#include "support/paths.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

const std::string kFakes = build_dir() + "/tests/fakes";

const std::string kCounting = R"(
[launch]
nproc = 2
[comm]
backend = "gloo"
[strategy]
kind = "ddp"
[model]
name = "simplenet"
options = { hidden = 4 }
[data]
name = "counting"
batch_size = 4
shuffle = false
options = { samples = 12, test_samples = 6 }
[train]
epochs = 2
)";

const std::vector<std::string> kNoTest = {"data.options.test_samples=0"};

ProcessResult train(const Workplace& place, const std::vector<std::string>& overrides = {}) {
  auto argv = place.training(place.config(kCounting), overrides);
  argv.insert(argv.end(), {"--plugin-path", kFakes});
  return place.run(argv);
}

ProcessResult validate(const Workplace& place, const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> arguments{"validate", place.config(kCounting), "--plugin-path", kFakes};
  for (const std::string& one : overrides) arguments.insert(arguments.end(), {"--set", one});
  return place.ddprun(arguments);
}

bool has_line(const std::string& text, const std::vector<std::string>& parts) {
  const auto lines = lines_of(text);
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return std::all_of(parts.begin(), parts.end(), [&](const auto& part) { return contains(line, part); });
  });
}

}  // namespace

TEST_CASE("plugins lists data sets: built-in ones, plugins, and refused ones") {
  const auto result = Workplace().ddprun({"plugins", "--plugin-path", kFakes});
  INFO(result.out);
  CHECK(result.code == 0);
  CHECK(has_line(result.out, {"dataset", "linear", "a straight line", "built in"}));
  CHECK(has_line(result.out, {"dataset", "counting", "1.2.3", "counts, in plain C", "libddprun_dataset_counting.so"}));
  CHECK(has_line(result.out, {"dataset", "no_fetch", "refused", "fetch is null"}));
  CHECK(has_line(result.out, {"dataset", "mnist", "refused", "comes with ddprun"}));
}

TEST_CASE("a rank loads a plugin that has a thread, and opens a plugin's data set, itself") {
  for (const std::string name : {"counting", "threaded"}) {  // their samples cannot be read in a fork
    CAPTURE(name);
    const auto result = train(Workplace(), {"data.name=" + name});
    INFO(result.err);
    CHECK(result.code == 0);
  }
}

TEST_CASE("two ranks train on a plugin's data set, and the run folder names it") {
  Workplace place;
  const auto result = train(place);
  INFO(result.err);
  REQUIRE(result.code == 0);
  CHECK(contains(result.err, "6 test samples"));
  const auto run = place.new_run();
  CHECK(steps_of(run, 0).size() == 6);
  const auto environment = nlohmann::json::parse(read_file(run / "environment.json"));
  CHECK(contains(environment.dump(), "\"plugin.dataset\":\"" + kFakes + "/libddprun_dataset_counting.so\""));
  CHECK(contains(environment.dump(), "\"plugin.dataset.version\":\"1.2.3\""));
}

TEST_CASE("validate accepts a plugin by name and by path") {
  Workplace place;
  CHECK(validate(place).code == 0);
  CHECK(validate(place, {"data.name=" + kFakes + "/libddprun_dataset_counting.so"}).code == 0);
}

TEST_CASE("an unknown data set is a config error, a refused plugin is a plugin error") {
  Workplace place;
  const auto unknown = validate(place, {"data.name=countng"});
  CHECK(unknown.code == 2);
  CHECK_MESSAGE(contains(unknown.err, "--set data.name=countng: data.name = \"countng\": expected \"linear\", "),
                unknown.err);
  CHECK_MESSAGE(contains(unknown.err, "(did you mean \"counting\"?); plugins are looked for in " + kFakes),
                unknown.err);
  const auto refused = validate(place, {"data.name=no_fetch"});
  CHECK(refused.code == 3);
  CHECK_MESSAGE(contains(refused.err, "data.name = \"no_fetch\": dataset plugin " + kFakes +
                                          "/libddprun_dataset_no_fetch.so: incomplete: fetch is null"),
                refused.err);
}

TEST_CASE("a data set without a test split: evaluation is refused before any rank starts, training works") {
  Workplace place;
  const auto refused = train(place, kNoTest);
  CHECK(refused.code == 2);
  CHECK_MESSAGE(
      contains(last_line(refused.err),
               "train.evaluate = true (the default): data set \"counting\" has no test split here; set it to false, or "
               "give data.validation"),
      refused.err);
  CHECK_FALSE(std::filesystem::exists(place.runs()));

  const auto trained = train(place, {kNoTest.front(), "train.evaluate=false"});
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  CHECK_FALSE(contains(trained.err, "test sample"));
  CHECK_FALSE(summary_of(place.new_run()).contains("test.loss"));

  const auto validated = train(place, {kNoTest.front(), "data.validation=4", "checkpoint.best=validation.loss"});
  INFO(validated.err);
  REQUIRE(validated.code == 0);
  const auto run = place.new_run();
  CHECK(summary_of(run).contains("validation.loss"));
  CHECK_FALSE(summary_of(run).contains("test.loss"));
  const auto best = train(place, {kNoTest.front(), "data.validation=4", "checkpoint.best=test.loss"});
  CHECK(best.code == 2);
  CHECK_MESSAGE(contains(last_line(best.err), "checkpoint.best = \"test.loss\": the data set has no test split here"),
                best.err);
  const auto evaluated = place.ddprun({"evaluate", "--checkpoint", run.string(), "--plugin-path", kFakes});
  CHECK(evaluated.code == 2);
  CHECK_MESSAGE(contains(last_line(evaluated.err), "has no test split here"), evaluated.err);
}

TEST_CASE("a sample that cannot be read in training ends it with 2, the sample's file and the step") {
  Workplace place;
  const auto result = train(place, {"data.options.fail_at=9"});
  CHECK(result.code == 2);
  CHECK_MESSAGE(contains(last_line(result.err), "counting/9.bin: byte 0: unreadable"), result.err);
  CHECK_MESSAGE(contains(last_line(result.err), "step"), result.err);
  CHECK(place.leftovers().empty());
}
