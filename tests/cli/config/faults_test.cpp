// One test per kind of error, with the exact line that the user reads.
#include <doctest/doctest.h>

#include "written.hpp"

using ddprun::testing::errors_of;
using ddprun::testing::required;

TEST_CASE("an unknown key is reported at its location, with the nearest name of its table") {
  CHECK(errors_of("[launch]\n  nprco = 2" + required) ==
        "exp.toml:2:3: launch.nprco: unknown key (did you mean \"nproc\"?)");
}

TEST_CASE("several ranks without a strategy are refused; an explicit single is a choice") {
  CHECK(errors_of("[launch]\nnproc = 4" + required) ==
        "exp.toml:2:9: launch.nproc = 4: strategy.kind is not given, and its default \"single\" trains in one process; "
        "set "
        "strategy.kind = \"ddp\" for 4 ranks");
  CHECK(errors_of("strategy.kind = \"single\"\nlaunch.nproc = 4" + required) == "");
}

TEST_CASE("an unknown key that exists in another table names that table") {
  CHECK(errors_of("[launch]\nlr = 2" + required) ==
        "exp.toml:2:1: launch.lr: unknown key (did you mean \"optimizer.lr\"?)");
}

TEST_CASE("an unknown key without a similar one gets the list of its table") {
  CHECK(errors_of("[log]\nwombat = 2" + required) ==
        "exp.toml:2:1: log.wombat: unknown key; [log] takes every, level, tensorboard, trace_steps, parity_steps");
}

TEST_CASE("an unknown table is reported at its name, with the nearest one") {
  CHECK(errors_of("[lunch]\nnproc = 2" + required) == "exp.toml:1:2: lunch: unknown table (did you mean \"launch\"?)");
  CHECK(
      errors_of("[wombat]" + required) ==
      "exp.toml:1:2: wombat: unknown table; the tables are experiment, launch, comm, strategy, model, data, optimizer, "
      "train, checkpoint, log, faults");
}

TEST_CASE("a key outside its table names the table") {
  CHECK(errors_of("nproc = 2" + required) ==
        "exp.toml:1:1: nproc: unknown key outside a table (did you mean \"launch.nproc\"?)");
  CHECK(errors_of("\"comm.backend\" = \"gloo\"" + required) ==
        "exp.toml:1:1: \"comm.backend\": unknown key; every key but schema_version stands in a table");
}

TEST_CASE("a value in place of a table is an error") {
  CHECK(errors_of("launch = 2" + required) ==
        "exp.toml:1:10: launch = 2: expected a table: [launch] on a line of its own");
  CHECK(errors_of("[[launch]]\nnproc = 2" + required) ==
        "exp.toml:1:1: launch = a list: expected a table: [launch] on a line of its own");
}

TEST_CASE("a wrong type is reported at the value") {
  CHECK(errors_of("[data]\nshuffle = \"yes\"\nname = 'x'\nmodel.name = 3") ==
        "exp.toml: model.name: missing; give it under [model], as in name = \"simplenet\"\n"
        "exp.toml:2:11: data.shuffle = \"yes\": expected true or false\n"
        "exp.toml:4:1: data.model: unknown key; [data] takes name, root, batch_size, batch_per, shuffle, workers, "
        "prefetch, pin_memory, last, sampler, difficulty, curriculum_start, curriculum_epochs, batch_weights, "
        "balance_steps, "
        "standardize, validation, options");
  CHECK(errors_of("log.every = 1.5" + required) == "exp.toml:1:13: log.every = 1.5: expected an integer of at least 1");
  CHECK(errors_of("optimizer.lr = \"0.1\"" + required) ==
        "exp.toml:1:16: optimizer.lr = \"0.1\": expected a number of at least 0");
  CHECK(errors_of("comm.backend = [1, 2]" + required) ==
        "exp.toml:1:16: comm.backend = [1, 2]: expected a string of at least one character");
  CHECK(
      errors_of("experiment.output = 2024-01-01" + required) ==
      "exp.toml:1:21: experiment.output = 2024-01-01: expected a string of at least one character; write it in quotes");
  CHECK(errors_of("optimizer.betas = [0.9]" + required) ==
        "exp.toml:1:19: optimizer.betas = [0.9]: expected two numbers from 0 to below 1");
  CHECK(errors_of("launch.nproc = {}" + required) ==
        "exp.toml:1:16: launch.nproc = a table: expected an integer from 1 to 1024 or \"auto\"");
}

TEST_CASE("a duration needs a unit and must be in its range") {
  const std::string expected = ": expected a duration from \"1ms\" to \"24h\", such as \"30s\"";
  for (const std::string value : {"30", "\"30\"", "\"-1s\"", "\"0s\"", "\"25h\"", "\"inf s\"", "\"1e3s\"", "\"s\"",
                                  "\"\"", "\"1 s\"", "\"1d\""}) {
    CHECK(errors_of("comm.timeout = " + value + required) == "exp.toml:1:16: comm.timeout = " + value + expected);
  }
}

TEST_CASE("a value out of range is reported with the range") {
  CHECK(errors_of("launch.nproc = 0" + required) ==
        "exp.toml:1:16: launch.nproc = 0: expected an integer from 1 to 1024 or \"auto\"");
  CHECK(errors_of("launch.nproc = \"many\"" + required) ==
        "exp.toml:1:16: launch.nproc = \"many\": expected an integer from 1 to 1024 or \"auto\"");
  CHECK(errors_of("checkpoint.keep = 0" + required) ==
        "exp.toml:1:19: checkpoint.keep = 0: expected an integer of at least 1 or \"all\"");
  CHECK(errors_of("strategy.bucket_cap_mb = 0" + required) ==
        "exp.toml:1:26: strategy.bucket_cap_mb = 0: expected a number above 0 and at most 65536");
  CHECK(errors_of("optimizer.momentum = 1" + required) ==
        "exp.toml:1:22: optimizer.momentum = 1: expected a number from 0 to below 1");
  CHECK(errors_of("optimizer.lr = inf" + required) ==
        "exp.toml:1:16: optimizer.lr = inf: expected a number of at least 0");
  CHECK(errors_of("optimizer.lr = nan" + required) ==
        "exp.toml:1:16: optimizer.lr = nan: expected a number of at least 0");
  CHECK(errors_of("train.epochs = -1" + required) ==
        "exp.toml:1:16: train.epochs = -1: expected an integer of at least 1");
}

TEST_CASE("a word that is not allowed gets the nearest allowed one") {
  CHECK(errors_of("optimizer.name = \"adma\"" + required) ==
        "exp.toml:1:18: optimizer.name = \"adma\": expected \"sgd\", \"adam\" or \"adamw\" (did you mean \"adam\"?)");
  CHECK(errors_of("data.last = \"wrap\"\nmodel.name = 'x'\ndata.name = 'x'") ==
        "exp.toml:1:13: data.last = \"wrap\": expected \"pad\", \"drop\" or \"exact\"");
  CHECK(errors_of("comm.algorithm = \"\"" + required) ==
        "exp.toml:1:18: comm.algorithm = \"\": expected a string of at least one character");
}

TEST_CASE("a control character in a string is refused, on one line") {
  CHECK(errors_of("comm.backend = \"a\\nb\"" + required) ==
        "exp.toml:1:16: comm.backend = \"a\\nb\": expected a string without control characters");
}

TEST_CASE("options take strings, numbers and booleans only") {
  CHECK(errors_of("comm.options = 3" + required) ==
        "exp.toml:1:16: comm.options = 3: expected a table of strings, numbers, true and false");
  CHECK(errors_of("[comm.options]\na = [1]\nb = {}\nc = 07:32:00" + required) ==
        "exp.toml:2:5: comm.options.a = [1]: expected a string, a number, true or false; a list is written as "
        "\"1\"\n"
        "exp.toml:3:5: comm.options.b = a table: expected a string, a number, true or false\n"
        "exp.toml:4:5: comm.options.c = 07:32:00: expected a string, a number, true or false");
}

TEST_CASE("a list in place of an option's string: the error shows how to write it, unless it is long") {
  const auto error = [](const std::string& list) {
    const std::string text = errors_of("[data.options]\nmean = " + list + required);
    return text.substr(text.find("]: ") + 3);
  };
  const std::string expected = "expected a string, a number, true or false";
  CHECK(error("[0.5, 0.25, 1]") == expected + "; a list is written as \"0.5, 0.25, 1\"");
  CHECK(error("[\"a.bin\", \"b.bin\"]") == expected + "; a list is written as \"a.bin, b.bin\"");
  CHECK(error("[]") == expected);
  CHECK(errors_of("[data.options]\nmean = [[1]]" + required).ends_with("false"));
  CHECK(error("[\"" + std::string(79, 'a') + "\", 1]") == expected);
}

TEST_CASE("a key that does not exist is refused, not ignored") {
  CHECK(errors_of("\n\n\n[launch]\nnnodes = 2" + required).starts_with("exp.toml:5:1: launch.nnodes: unknown key"));
  CHECK(
      errors_of("strategy.compress = 'none'" + required).starts_with("exp.toml:1:10: strategy.compress: unknown key"));
}

TEST_CASE("a file with another schema version gets no other error") {
  CHECK(errors_of("schema_version = 2\n[other]\nkeys = 3") ==
        "exp.toml:1:18: schema_version = 2: this ddprun reads schema_version 1; use the ddprun that the file was "
        "written for");
  CHECK(errors_of("schema_version = \"1\"" + required) ==
        "exp.toml:1:18: schema_version = \"1\": expected the integer 1");
}

TEST_CASE("missing keys are reported with an example") {
  CHECK(errors_of("") ==
        "exp.toml: model.name: missing; give it under [model], as in name = \"simplenet\"\n"
        "exp.toml: data.name: missing; give it under [data], as in name = \"mnist\"");
  CHECK(errors_of("model = 3\ndata.name = 'x'") ==
        "exp.toml:1:9: model = 3: expected a table: [model] on a line of its own");
}

TEST_CASE("ddp without a distributed sampler is refused") {
  for (const std::string sampler : {"\"random\"", "\"sequential\""}) {
    CHECK(errors_of("strategy.kind = 'ddp'\ndata.sampler = " + sampler + "\ndata.name = 'x'\nmodel.name = 'x'") ==
          "exp.toml:2:16: data.sampler = " + sampler +
              ": ddp without a distributed sampler is refused; use \"auto\" or \"distributed\"");
  }
  CHECK(errors_of("strategy.kind = 'ddp'\ndata.sampler = 'distributed'\ndata.name = 'x'\nmodel.name = 'x'") == "");
}

TEST_CASE("a global batch that is not divisible by the ranks is refused, a batch per rank is not") {
  const std::string three = "strategy.kind = 'ddp'\nlaunch.nproc = 3\nmodel.name = 'x'\ndata.name = 'x'\n";
  CHECK(errors_of(three + "data.batch_size = 100") ==
        "exp.toml:5:19: data.batch_size = 100: is the batch of all ranks, and 3 ranks do not "
        "divide it; "
        "use 99 or 102, or data.batch_per = \"rank\"");
  CHECK(errors_of(three).starts_with("exp.toml: data.batch_size = 64 (the default): is the batch of all ranks"));
  CHECK(errors_of(three + "data.batch_size = 2").ends_with("; use 3, or data.batch_per = \"rank\""));
  CHECK(errors_of(three + "data.batch_size = 99") == "");
  CHECK(errors_of(three + "data.batch_size = 100\ndata.batch_per = 'rank'") == "");
}

TEST_CASE("nesterov without momentum is refused under sgd") {
  CHECK(errors_of("optimizer.nesterov = true" + required) ==
        "exp.toml:1:22: optimizer.nesterov = true: needs momentum; give optimizer.momentum, such as 0.9, or nesterov = "
        "false");
  CHECK(errors_of("optimizer.nesterov = true\noptimizer.name = 'adam'" + required) == "");
}

TEST_CASE("epochs and steps together are refused") {
  CHECK(errors_of("[train]\nepochs = 1\nsteps = 10" + required) ==
        "exp.toml:3:9: train.steps = 10: train.epochs is given too; give one of the two");
}

TEST_CASE("a name that cannot be a folder is refused") {
  CHECK(
      errors_of("experiment.name = \"a/b\"" + required) ==
      "exp.toml:1:19: experiment.name = \"a/b\": names the run folder: give at most 200 bytes of UTF-8, without \"/\"");
  CHECK(errors_of("experiment.name = \"..\"" + required).starts_with("exp.toml:1:19: experiment.name = \"..\": names"));
  CHECK(errors_of("experiment.name = \"" + std::string(201, 'x') + "\"" + required) != "");
  const ddprun::testing::TempDir dir;
  CHECK_THROWS_AS(ddprun::config::load(dir.write("x\xff.toml", required), {}), ddprun::Error);
}

TEST_CASE("all errors are reported together, in the order of the file, the overrides last") {
  CHECK(
      errors_of("[train]\nepochs = 0\n[comm]\ntimeout = 3\nbakcend = \"x\"\n[data]\nlast = \"pda\"\n[log]\nevery = 0\n",
                {"log.level=loud", "optimizer.lr=-1"}) ==
      "exp.toml: model.name: missing; give it under [model], as in name = \"simplenet\"\n"
      "exp.toml: data.name: missing; give it under [data], as in name = \"mnist\"\n"
      "exp.toml:2:10: train.epochs = 0: expected an integer of at least 1\n"
      "exp.toml:4:11: comm.timeout = 3: expected a duration from \"1ms\" to \"24h\", such as \"30s\"\n"
      "exp.toml:5:1: comm.bakcend: unknown key (did you mean \"backend\"?)\n"
      "exp.toml:7:8: data.last = \"pda\": expected \"pad\", \"drop\" or \"exact\" (did you mean \"pad\"?)\n"
      "exp.toml:9:9: log.every = 0: expected an integer of at least 1\n"
      "--set log.level=loud: log.level = \"loud\": expected \"debug\", \"info\", \"warning\" or \"error\"\n"
      "--set optimizer.lr=-1: optimizer.lr = -1: expected a number of at least 0");
}

TEST_CASE("the validation set is a fraction or a number of samples") {
  const std::string names = "\nmodel.name = 'x'\ndata.name = 'x'\n";
  for (const std::string good : {"0", "0.1", "1", "5000"}) CHECK(errors_of("data.validation = " + good + names) == "");
  for (const std::string wrong :
       {"0.0", "-0.0", "1.0", "2.5", "-1", "-0.1", "nan", "inf", "true", "'0.1'", "[0.1]", "1099511627777"}) {
    const std::string error = errors_of("data.validation = " + wrong + names);
    INFO(error);
    CHECK(error.starts_with("exp.toml:1:19: data.validation = "));
    CHECK(error.ends_with(": expected a fraction above 0 and below 1, or an integer from 0 to 1099511627776"));
  }
}

TEST_CASE("a metric of the validation set needs one") {
  const std::string keys =
      "checkpoint.best = 'validation.accuracy'\ntrain.early_stop = 'validation.loss'\n"
      "model.name = 'x'\ndata.name = 'x'\n";
  const std::string what = ": needs data.validation, the part of the training set to evaluate on, such as 0.1";
  CHECK(errors_of(keys + "data.validation = 100") == "");
  CHECK(errors_of(keys) == "exp.toml:1:19: checkpoint.best = \"validation.accuracy\"" + what +
                               "\nexp.toml:2:20: train.early_stop = \"validation.loss\"" + what);
  CHECK(errors_of(keys, {"data.validation=0", "train.evaluate=false"}) == errors_of(keys));
}

TEST_CASE("checkpoint.best of a test metric needs an evaluation") {
  const std::string best = "checkpoint.best = 'test.loss'\nmodel.name = 'x'\ndata.name = 'x'\n";
  CHECK(errors_of(best) == "");
  CHECK(errors_of(best + "train.evaluate = false") ==
        "exp.toml:1:19: checkpoint.best = \"test.loss\": needs train.evaluate = true; or use \"train.loss\"");
  CHECK(errors_of("checkpoint.best = 'accuracy'" + required) ==
        "exp.toml:1:19: checkpoint.best = \"accuracy\": expected \"\", \"validation.loss\", "
        "\"validation.accuracy\", \"test.loss\", \"test.accuracy\" or \"train.loss\"");
}

TEST_CASE("batch_weights need a weight for each rank") {
  const std::string ddp = "strategy.kind = 'ddp'\nlaunch.nproc = 2\nmodel.name = 'x'\ndata.name = 'x'\n";
  CHECK(errors_of(ddp + "data.batch_weights = [2, 1]") == "");
  CHECK(errors_of(ddp + "data.batch_weights = [2, 1, 1]") ==
        "exp.toml:5:22: data.batch_weights = [2, 1, 1]: has 3 weights for 2 ranks; give one for each");
  CHECK(errors_of(ddp + "data.batch_weights = [2, 0]") ==
        "exp.toml:5:22: data.batch_weights = [2, 0]: expected a list of integers from 1 to 65536");
  CHECK(errors_of(ddp + "data.batch_weights = [2, 1]\ndata.balance_steps = 5") ==
        "exp.toml:6:22: data.balance_steps = 5: data.batch_weights is given too; give one of the two");
}

TEST_CASE("an error that only follows from another one is not reported") {
  CHECK(errors_of("strategy.kind = 'dpp'\nlaunch.nproc = 2" + required) ==
        "exp.toml:1:17: strategy.kind = \"dpp\": expected \"single\", \"dp\" or \"ddp\" (did you mean \"dp\"?)");
}
