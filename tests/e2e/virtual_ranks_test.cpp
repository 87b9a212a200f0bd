// strategy.virtual_ranks: any number of ranks computes the same weights, bit for bit.
#include <doctest/doctest.h>

#include <fstream>
#include <random>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"
#include "e2e/virtual_ranks.hpp"
#include "testing/temp_dir.hpp"

using namespace ddprun::e2e;

namespace {

class Runs {
 public:
  ddprun::testing::ProcessResult start(int ranks, std::vector<std::string> more) {
    more.push_back("launch.nproc=" + std::to_string(ranks));
    return place_.run(place_.training(config_, more));
  }
  nlohmann::json summary(int ranks, const std::vector<std::string>& more) {
    const auto result = start(ranks, more);
    INFO(result.err);
    REQUIRE(result.code == 0);
    last_ = place_.new_run();
    return summary_of(last_);
  }
  const std::filesystem::path& last() const { return last_; }

 private:
  Workplace place_;
  std::string config_ = place_.config(kVirtualRanks);
  std::filesystem::path last_;
};

using More = std::vector<std::string>;

// What must be equal on any number of ranks.
std::vector<nlohmann::json> numbers_of(const nlohmann::json& summary) {
  return {summary.at("weights.sha256"), summary.at("test.loss"), summary.at("test.accuracy"), summary.at("steps")};
}

void check_equal(const More& more, const std::vector<int>& ranks) {
  CAPTURE(more);
  Runs runs;
  const auto expected = runs.summary(8, more);
  for (const int count : ranks) {
    CAPTURE(count);
    const auto summary = runs.summary(count, more);
    CHECK(numbers_of(summary) == numbers_of(expected));
    CHECK(summary.at("virtual_ranks") == 8);
    CHECK(summary.at("world") == count);
  }
}

}  // namespace

TEST_CASE("1 to 5 ranks compute what 8 compute, over each backend") {
  Runs runs;
  const auto expected = numbers_of(runs.summary(8, {"comm.backend=gloo"}));
  for (const int ranks : {1, 2, 3, 4, 5}) {
    CAPTURE(ranks);
    CHECK(numbers_of(runs.summary(ranks, {"comm.backend=gloo"})) == expected);
  }
  for (const int ranks : {3, 8}) CHECK(numbers_of(runs.summary(ranks, {"comm.backend=shm"})) == expected);
  for (const int ranks : {4, 5, 6}) CHECK(numbers_of(runs.summary(ranks, {"comm.backend=ucx"})) == expected);
  CHECK(numbers_of(runs.summary(7, {"comm.backend=gloo"})) == expected);
  CHECK(numbers_of(runs.summary(2, {"comm.backend=gloo", "comm.algorithm=tree"})) == expected);
  CHECK(numbers_of(runs.summary(3, {"comm.backend=gloo", "experiment.seed=1"})) != expected);
}

TEST_CASE("the backend adds if the chosen algorithm has the order of the tree, on a power of two of ranks") {
  Runs runs;
  const auto expected = runs.summary(4, {"comm.backend=gloo"});
  CHECK(expected.at("algorithm") == "doubling");
  const std::vector<std::pair<std::string, std::string>> used = {{"halving_doubling", "halving_doubling"},
                                                                 {"ring", "tree"}};
  for (const auto& [algorithm, name] : used) {
    CAPTURE(algorithm);
    const auto summary = runs.summary(4, {"comm.backend=gloo", "comm.algorithm=" + algorithm});
    CHECK(summary.at("algorithm") == name);
    CHECK(numbers_of(summary) == numbers_of(expected));
  }
  CHECK(runs.summary(3, {"comm.backend=gloo"}).at("algorithm") == "tree");
}

TEST_CASE("the output says so if a rank sends more bytes than in a ring") {
  Runs runs;
  const auto world_size = [&](int ranks) {
    const std::string out = runs.start(ranks, {"comm.backend=gloo", "train.steps=1"}).err;
    const auto begin = out.find("world size");
    return out.substr(begin, out.find('\n', begin) - begin);
  };
  CHECK(world_size(3) == "world size  3, 8 virtual ranks; a rank sends up to 1.5 times the bytes of a ring");
  CHECK(world_size(5) == "world size  5, 8 virtual ranks");
}

// A sum of two has one order. On more ranks, these algorithms have that of the tree. A division by 2, 4 or 8 rounds
// nothing.
TEST_CASE("after each step, virtual ranks have the weights of ddp on as many ranks, if its algorithm has the order") {
  struct Ddp {
    int ranks;
    std::string backend, algorithm;
  };
  for (const auto& [ranks, backend, algorithm] :
       {Ddp{2, "gloo", "ring"}, Ddp{4, "ucx", "tree"}, Ddp{8, "gloo", "halving_doubling"}, Ddp{8, "shm", "staged"}}) {
    CAPTURE(ranks);
    CAPTURE(backend);
    Runs runs;
    const More each_step = {"checkpoint.every_steps=1", "checkpoint.keep=all", "train.epochs=1"};
    const auto plain = runs.summary(
        ranks, each_step + More{"strategy.virtual_ranks=0", "comm.backend=" + backend, "comm.algorithm=" + algorithm});
    const auto expected = commits_of(runs.last());
    CHECK(expected.size() == 8);
    const auto summary =
        runs.summary(ranks == 2 ? 1 : 3, each_step + More{"strategy.virtual_ranks=" + std::to_string(ranks)});
    const auto commits = commits_of(runs.last());
    REQUIRE(commits.size() == expected.size());
    for (std::size_t i = 0; i < commits.size(); ++i) {
      CHECK(weights_in(commits[i].path) == weights_in(expected[i].path));
    }
    CHECK(summary.at("test.loss") == plain.at("test.loss"));
    CHECK_FALSE(plain.contains("weights.sha256"));
  }
}

TEST_CASE("and with each setting that changes gradients, weights or samples") {
  check_equal({"strategy.compression=bf16"}, {2, 3});
  check_equal({"strategy.compression=fp16", "train.clip_norm=0.5"}, {1, 2, 4});
  check_equal({"train.accumulate=2", "data.options.samples=256", "strategy.zero=1", "optimizer.name=adam"}, {3});
  check_equal({"train.amp=fp16", "data.last=exact", "data.options.samples=244", "train.schedule=cosine"}, {5});
  check_equal({"train.amp=bf16", "data.last=drop", "strategy.find_unused_parameters=true"}, {2});
  check_equal({"strategy.broadcast_buffers=false"}, {3});
}

TEST_CASE("and with images that are cropped and flipped at random") {
  const ddprun::testing::TempDir folder;
  std::ofstream file(folder.path() / "images.bin");
  std::minstd_rand random;
  for (int image = 0; image < 96; ++image) {
    file << static_cast<char>(image % 10);
    for (int byte = 0; byte < 3 * 32 * 32; ++byte) file << static_cast<char>(random());
  }
  file.close();
  const std::string changes = ", random_crop = 4, random_flip = true";
  const auto with = [&](const std::string& options) {
    return More{"data.name=cifar10", "data.root=" + folder.path().string(),
                "data.options={ train = \"images.bin\", test = \"images.bin\", image_size = 8" + options + " }"};
  };
  check_equal(with(changes), {1, 3});
  Runs runs;
  CHECK(numbers_of(runs.summary(2, with(""))) != numbers_of(runs.summary(2, with(changes))));
}

TEST_CASE(
    "with SyncBatchNorm, any number of ranks computes what eight compute, as without virtual ranks but for rounding") {
  check_equal({"model.sync_batch_norm=true", "comm.backend=shm"}, {1, 3, 5});
  check_equal({"model.sync_batch_norm=true", "train.accumulate=2", "data.options.samples=256", "strategy.zero=1",
               "comm.backend=ucx"},
              {2});
  check_equal({"model.sync_batch_norm=true", "train.amp=bf16", "strategy.compression=bf16", "train.clip_norm=0.5"},
              {3});
  Runs runs;
  const More two_steps = {"model.sync_batch_norm=true", "comm.backend=gloo", "train.steps=2"};
  runs.summary(4, two_steps + More{"strategy.virtual_ranks=0"});
  const Weights expected = weights_of(runs.last());
  runs.summary(3, two_steps + More{"strategy.virtual_ranks=4"});
  CHECK(distance(weights_of(runs.last()), expected) < 1e-5);
  runs.summary(3, More{"comm.backend=gloo", "train.steps=2", "strategy.virtual_ranks=4"});
  CHECK(distance(weights_of(runs.last()), expected) > 1e-3);
}

// With a batch larger than the samples that are left, some virtual ranks have none.
TEST_CASE("virtual ranks without samples in a step count as zero, on any number of ranks") {
  check_equal({"model.name=simplenet", "data.options.samples=67", "data.last=exact"}, {1, 3, 5});
}

TEST_CASE("early stop and the best weights choose the same epochs") {
  const More more = {"train.epochs=6", "train.early_stop=test.loss", "train.patience=1", "optimizer.lr=0.5",
                     "checkpoint.best=test.accuracy"};
  Runs runs;
  const auto expected = runs.summary(8, more), summary = runs.summary(3, more);
  CHECK(numbers_of(summary) == numbers_of(expected));
  CHECK(summary.at("best.epoch") == expected.at("best.epoch"));
  CHECK(summary.at("epochs") == expected.at("epochs"));
}

TEST_CASE("a run resumes in the middle of an epoch on another number of ranks, over another backend") {
  for (const More& more : {More{"optimizer.name=adam"}, {"strategy.broadcast_buffers=false", "strategy.zero=1"}}) {
    CAPTURE(more);
    Runs runs;
    const auto expected = numbers_of(runs.summary(4, more));
    More stopped = more;
    stopped.push_back("train.steps=11");
    runs.summary(3, stopped);
    const std::string commit = commits_of(runs.last()).back().path;
    for (const int ranks : {1, 5, 8}) {
      CAPTURE(ranks);
      More resumed = more;
      resumed.insert(resumed.end(), {"checkpoint.resume=" + commit, "comm.backend=shm"});
      auto summary = runs.summary(ranks, resumed);
      summary["steps"] = expected.back();  // of the whole run
      CHECK(numbers_of(summary) == expected);
    }
  }
}

TEST_CASE(
    "a model with a state or random numbers of its own is refused at the first step, by the name of a parameter") {
  Runs runs;
  for (const std::string fault : {"counts_calls", "own_random"}) {
    CAPTURE(fault);
    const auto result = runs.start(2, {std::string("model.name=") + FAULTY_MODEL, "model.options.fault=" + fault});
    CHECK(result.code == 2);
    CHECK(ddprun::testing::contains(result.err,
                                    "strategy.virtual_ranks: the gradient of fc1.weight changed when the same samples "
                                    "were computed twice: the model keeps a state outside its buffers"));
  }
  CHECK(runs.start(2, {std::string("model.name=") + FAULTY_MODEL}).code == 0);
}

TEST_CASE("a data set whose samples depend on the order of fetches is refused before the first step") {
  Runs runs;
  const std::string config = std::string("data.name=") + FAULTY_DATASET;
  const auto start = [&](const std::string& options) {
    return runs.start(2, {"model.name=simplenet", config, "data.options=" + options, "train.evaluate=false"});
  };
  const auto result = start("{ fault = \"counts_calls\" }");
  CHECK(result.code == 2);
  CHECK_MESSAGE(ddprun::testing::contains(result.err, "sample 3 of this data set changes when the samples are fetched"),
                result.err);
}
