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
  CHECK(load_text(file, {"comm.options={z = true}"}).sources.find("comm.options.z")->where ==
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
}

TEST_CASE("an override that is no line of TOML is shown on one line") {
  CHECK(errors_of(required, {"launch.nproc=\n2"}) ==
        "--set \"launch.nproc=\\n2\": expected table.key=value on one line, as in --set launch.nproc=2");
  CHECK(errors_of(required, {"data.root=\"x"}).starts_with("--set data.root=\"x: Error while parsing"));
  CHECK(errors_of(required, {"data.root=x\xff"}) == "--set data.root=x\xff: Encountered invalid utf-8 sequence");
}

TEST_CASE("a key that takes a string takes a number, a date or a word of TOML without quotes, as a shell gives it") {
  const auto name = [](const std::string& value) {
    return load_text(required, {"experiment.name=" + value}).experiment.experiment.name;
  };
  for (const char* value : {"4711", "2026-11-26", "nan", "1e5", "true", "1_000", "0x1f", "12#3", "07:32:00"}) {
    CHECK(name(value) == value);
  }
  CHECK(name("\"4711\"") == "4711");
  CHECK(load_text(required, {"data.options.samples=7"}).experiment.data.options.at("samples") == "7");
}

TEST_CASE("an error shows a float as TOML, also if it is a whole number, in the file and in an override") {
  const auto epochs = [](const std::string& text) {
    return "train.epochs = " + text + ": expected an integer of at least 1";
  };
  for (const char* value : {"1e+30", "2.0", "-2.0", "0.1", "inf"}) {
    CHECK(errors_of("# Größe\n[train]\nepochs =   " + std::string(value) + "  # ü" + required) ==
          "exp.toml:3:12: " + epochs(value));
    CHECK(errors_of(required, {"train.epochs=" + std::string(value)}) ==
          "--set train.epochs=" + std::string(value) + ": " + epochs(value));
  }
  CHECK(errors_of("log = { level = 'ü', trace_steps = [1, 2.0, 3e0] }" + required)
            .find("log.trace_steps = [1, 2.0, 3.0]: ") != std::string::npos);
  CHECK(errors_of("launch.nproc = 2e0" + required) ==
        "exp.toml:1:16: launch.nproc = 2.0: expected an integer from 1 to 1024 or \"auto\"");
  const config::Loaded options = load_text("comm.options = { lanes = 1.50e1 }" + required);
  CHECK(config::error(options.sources, "comm.options.lanes", "no") ==
        options.sources.file + ":1:26: comm.options.lanes = 15.0: no");
}

TEST_CASE("an override that another option makes is shown as that option") {
  const testing::TempDir dir;
  const std::string path = dir.write("exp.toml", required);
  const auto load = [&](const std::vector<std::string>& overrides) {
    return config::load(path, overrides, std::nullopt, {{"launch.nproc=0", "--nproc-per-node 0"}});
  };
  try {
    load({"launch.nproc=0", "train.epochs=0"});
    FAIL("loaded");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) ==
          "--nproc-per-node 0: launch.nproc = 0: expected an integer from 1 to 1024 or \"auto\"\n"
          "--set train.epochs=0: train.epochs = 0: expected an integer of at least 1");
  }
}
