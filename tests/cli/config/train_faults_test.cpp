// Errors in keys of [train] that conflict with each other or with other keys.
#include <doctest/doctest.h>

#include "written.hpp"

using namespace ddprun;
using testing::errors_of;
using testing::required;

namespace {

// The keys that every experiment needs, without table headers.
const std::string names = "\nmodel.name = 'x'\ndata.name = 'x'";

}  // namespace

TEST_CASE("more micro-batches than a rank has samples are refused") {
  CHECK(errors_of("train.accumulate = 8\ndata.batch_size = 8" + names) == "");
  CHECK(errors_of("train.accumulate = 9\ndata.batch_size = 8" + names) ==
        "exp.toml:1:20: train.accumulate = 9: is more micro-batches than a rank has samples in a step, which is 8; use "
        "at most that, or a larger data.batch_size");
  const std::string ranks = "\nstrategy.kind = 'ddp'\nlaunch.nproc = 4\ndata.batch_size = 8";
  CHECK(errors_of("train.accumulate = 2" + ranks + names) == "");
  CHECK(errors_of("train.accumulate = 3" + ranks + names)
            .ends_with("which is 2; use at most that, or a larger "
                       "data.batch_size"));
  CHECK(errors_of("train.accumulate = 8\ndata.batch_per = 'rank'" + ranks + names) == "");
  // One rank per core: the number of ranks is unknown here.
  CHECK(errors_of("train.accumulate = 8\nstrategy.kind = 'ddp'\nlaunch.nproc = 'auto'\ndata.batch_size = 8" + names) ==
        "");
}

TEST_CASE("BatchNorm over all ranks needs samples on all of them, and no graph") {
  const std::string on = "model.sync_batch_norm = true\ndata.batch_size = 8",
                    ddp = "\nstrategy.kind = 'ddp'\nlaunch.nproc = 2";
  CHECK(errors_of(on + ddp + names) == "");
  CHECK(errors_of(on + "\ndata.last = 'exact'" + names) == "");  // not used by strategy single
  const std::string key = "exp.toml:1:25: model.sync_batch_norm = true: ";
  CHECK(errors_of(on + ddp + "\ndata.last = 'exact'" + names) ==
        key + "needs samples on every rank in every step; use data.last = \"pad\" or \"drop\"");
  CHECK(errors_of(on + ddp + "\ndata.balance_steps = 5" + names) ==
        key + "needs samples on every rank in every micro-batch; leave out data.batch_weights and data.balance_steps");
  CHECK(errors_of(on + ddp + "\ntrain.cuda_graph = true\nlaunch.device = 'cuda'" + names) ==
        key +
            "waits for the other ranks within forward, which a CUDA graph cannot record; set one of the two to false");
}

TEST_CASE("a fault on purpose needs a rank that can make it") {
  const std::string ddp = "\nstrategy.kind = 'ddp'\nlaunch.nproc = 2";
  CHECK(errors_of("faults = { kind = 'kill', rank = 1 }" + ddp + names) == "");
  CHECK(errors_of("faults = { kind = 'none', rank = 9 }" + names) == "");
  CHECK(errors_of("faults = { kind = 'kill', rank = 2 }" + ddp + names) ==
        "exp.toml:1:34: faults.rank = 2: the run has 2 ranks, from 0 to 1");
  CHECK(errors_of("faults = { kind = 'kill', rank = 1 }" + names) ==
        "exp.toml:1:34: faults.rank = 1: the run has 1 rank, 0");
  CHECK(errors_of("faults.kind = 'drop'" + names) ==
        "exp.toml:1:15: faults.kind = \"drop\": changes a collective, and only strategy \"ddp\" has collectives");
  CHECK(errors_of("faults.kind = 'stop'\ntrain.cuda_graph = true\nlaunch.device = 'cuda'" + names)
            .starts_with("exp.toml:1:15: faults.kind = \"stop\": needs steps that are not replayed"));
}

TEST_CASE("a CUDA graph cannot check gradients") {
  const std::string graph = "\ntrain.cuda_graph = true\nlaunch.device = 'cuda'";
  CHECK(errors_of("train.check_gradients = 'auto'" + graph + names) == "");
  CHECK(errors_of("train.check_gradients = 'skip'" + graph + names) ==
        "exp.toml:2:20: train.cuda_graph = true: cannot record the check of train.check_gradients; set that to "
        "\"off\", or this to false");
}

TEST_CASE("the schedule step needs its epochs") {
  CHECK(errors_of("train.schedule = 'step'" + required) ==
        "exp.toml:1:18: train.schedule = \"step\": needs train.step_epochs, the epochs between two reductions of the "
        "learning rate");
  CHECK(errors_of("train.schedule = 'step'\ntrain.step_epochs = 3" + required) == "");
}

TEST_CASE("a cosine schedule must not rise") {
  CHECK(errors_of("train.min_lr = 0.2\ntrain.schedule = 'cosine'\noptimizer.lr = 0.1" + required) ==
        "exp.toml:1:16: train.min_lr = 0.2: is above optimizer.lr, from which the rate falls");
  CHECK(errors_of("train.min_lr = 0.2\noptimizer.lr = 0.1" + required) == "");
  CHECK(errors_of("train.min_lr = 0.1\ntrain.schedule = 'cosine'\noptimizer.lr = 0.1" + required) == "");
}

TEST_CASE("warm-up must be shorter than the run") {
  CHECK(errors_of("train = { warmup = 10, steps = 10 }" + required) ==
        "exp.toml:1:20: train.warmup = 10: leaves nothing of the run, which has 10 steps; use fewer");
  CHECK(errors_of("train = { warmup = 9, steps = 10 }" + required) == "");
}

TEST_CASE("early stop needs a metric that is measured") {
  CHECK(errors_of("train = { early_stop = 'test.loss', evaluate = false }" + required) ==
        "exp.toml:1:24: train.early_stop = \"test.loss\": needs train.evaluate = true; or use \"train.loss\"");
  const std::string without = "\ntrain.evaluate = false\ncheckpoint.best = 'validation.loss'" + names;
  CHECK(errors_of("data.validation = 0.5" + without) ==
        "exp.toml:3:19: checkpoint.best = \"validation.loss\": needs train.evaluate = true; or use \"train.loss\"");
  CHECK(errors_of("train = { early_stop = 'train.loss', evaluate = false }" + required) == "");
  CHECK(errors_of("train = { early_stop = 'test.accuracy' }" + required) == "");
}
