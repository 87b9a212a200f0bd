#include <doctest/doctest.h>

#include "written.hpp"

using namespace ddprun;
using testing::errors_of;
using testing::load_text;
using testing::required;

TEST_CASE("an override replaces the file's value, and a later one an earlier one") {
  const config::Experiment e = load_text("comm.algorithm = 'ring'\nlog.every = 3" + required,
                                         {"comm.algorithm=tree", "log.every=4", "log.every=5",
                                          "optimizer.betas=[0.5, 0.6]", "train.evaluate=false"})
                                   .experiment;
  CHECK(e.comm.algorithm == "tree");
  CHECK(e.log.every == 5);
  CHECK(e.optimizer.betas == std::vector<double>{0.5, 0.6});
  CHECK_FALSE(e.train.evaluate);
}

TEST_CASE("an override's value is TOML, or else a bare word") {
  const auto output = [](const std::string& value) {
    return load_text(required, {"experiment.output=" + value}).experiment.experiment.output;
  };
  CHECK(output("runs") == "runs");
  CHECK(output("\"runs\"") == "runs");
  CHECK(output("'runs'") == "runs");
  CHECK(output("/data/my runs/x.y=z") == "/data/my runs/x.y=z");
  CHECK(output("a\"b") == "a\"b");
  CHECK(output("läufe") == "läufe");
  CHECK(load_text(required, {"comm.timeout=500ms"}).experiment.comm.timeout == 0.5);
  CHECK(load_text(required, {"data.root=\"\""}).experiment.data.root == "");
}

TEST_CASE("options are set one by one, or all at once") {
  const std::string file = "comm.options = { a = 1, b = 2 }" + required;
  CHECK(load_text(file, {"comm.options.b=3", "comm.options.c-d=x", "model.options.width=64"}).experiment.comm.options ==
        config::Options{{"a", "1"}, {"b", "3"}, {"c-d", "x"}});
  CHECK(load_text(file, {"comm.options.b=3", "comm.options={z = true}"}).experiment.comm.options ==
        config::Options{{"z", "true"}});
  CHECK(load_text(file, {"comm.options={z = true}"}).sources.where("comm.options.z") ==
        "--set comm.options={z = true}");
}

TEST_CASE("the required keys may come from overrides") {
  CHECK(load_text("", {"model.name=linear", "data.name=linear"}).experiment.model.name == "linear");
}

TEST_CASE("train.steps on the command line replaces train.epochs of the file, and vice versa") {
  const config::Experiment steps = load_text("train.epochs = 5" + required, {"train.steps=7"}).experiment;
  CHECK(steps.train.steps == 7);
  CHECK_FALSE(steps.train.epochs.has_value());
  const config::Experiment epochs = load_text("train.steps = 5" + required, {"train.epochs=7"}).experiment;
  CHECK(epochs.train.epochs == 7);
  CHECK_FALSE(epochs.train.steps.has_value());
  CHECK(errors_of(required, {"train.epochs=1", "train.steps=7"}) ==
        "--set train.steps=7: train.steps = 7: train.epochs is given too; give one of the two");
}

TEST_CASE("errors of overrides point at the override") {
  const auto error = [](const std::string& override) { return errors_of(required, {override}); };
  CHECK(error("launch") == "--set launch: expected table.key=value on one line, as in --set launch.nproc=2");
  CHECK(error("launch.nproc=\n2") ==
        "--set \"launch.nproc=\\n2\": expected table.key=value on one line, as in --set launch.nproc=2");
  CHECK(error("lunch.nproc=2") == "--set lunch.nproc=2: lunch: unknown table (did you mean \"launch\"?)");
  CHECK(error("launch.nprco=2") == "--set launch.nprco=2: launch.nprco: unknown key (did you mean \"nproc\"?)");
  CHECK(error("nproc=2") == "--set nproc=2: nproc: unknown key outside a table (did you mean \"launch.nproc\"?)");
  CHECK(error("launch.nproc.x=2") == "--set launch.nproc.x=2: expected table.key=value, or table.options.name=value");
  CHECK(error("comm.options.=2") == "--set comm.options.=2: expected table.key=value, or table.options.name=value");
  CHECK(error("data.root=") == "--set data.root=: no value; write \"\" for an empty string");
  CHECK(error("data.batch_size=many") ==
        "--set data.batch_size=many: data.batch_size = \"many\": expected an integer from 1 to 16777216");
  CHECK(error("data.root=\"x").starts_with("--set data.root=\"x: Error while parsing"));
  CHECK(error("data.root=x\xff") == "--set data.root=x\xff: Encountered invalid utf-8 sequence");
  CHECK(error("launch.device=gpu") == "--set launch.device=gpu: launch.device = \"gpu\": expected \"cpu\" or \"cuda\"");
}
