#include <doctest/doctest.h>

#include "support/error_of.hpp"
#include "support/text.hpp"
#include "testing/temp_dir.hpp"
#include "tools/compare/runner.hpp"
#include "tools/compare/variant.hpp"

using namespace ddprun;
using namespace ddprun::compare;
using testing::contains;
using testing::error_of;
using testing::TempDir;

namespace {

constexpr const char* kConfig =
    "[model]\nname = \"linear\"\n[data]\nname = \"linear\"\nbatch_size = 32\n[train]\nepochs = 2\n";

std::vector<std::string> names_of(const std::vector<Variant>& variants) {
  std::vector<std::string> names;
  for (const Variant& variant : variants) names.push_back(variant.name);
  return names;
}

using Names = std::vector<std::string>;

std::vector<Variant> variants_of_grid(const std::string& file, const Names& varied, const Names& common) {
  return variants_of_overrides(file, grid_of(varied), common);
}

}  // namespace

TEST_CASE("values are split at commas, but not within a list") {
  CHECK(parse_vary("comm.algorithm=ring,tree").values == Names{"ring", "tree"});
  CHECK(parse_vary("comm.algorithm=ring, tree").values == Names{"ring", "tree"});
  CHECK(parse_vary("optimizer.betas=[0.9, 0.99],[0.8, 0.9]").values == Names{"[0.9, 0.99]", "[0.8, 0.9]"});
  CHECK(parse_vary("data.options.mean=\"0.1, 0.2\",0.5").values == Names{"\"0.1, 0.2\"", "0.5"});
  CHECK(contains(error_of([] { parse_vary("ring,tree"); }), "2: --vary ring,tree: expected KEY=VALUE"));
  CHECK(contains(error_of([] { parse_vary("comm.algorithm=ring,"); }), "a value is empty"));
  CHECK(contains(error_of([] { parse_vary("comm.algorithm=ring,ring"); }), "a value is given twice"));
}

TEST_CASE("a grid has every combination, and names for each") {
  const TempDir dir;
  const std::string file = dir.write("exp.toml", kConfig);
  const auto variants =
      variants_of_grid(file, {"strategy.kind=single,ddp", "optimizer.lr=0.1,0.01"}, {"launch.nproc=2"});
  CHECK(names_of(variants) == Names{"single lr=0.1", "single lr=0.01", "ddp lr=0.1", "ddp lr=0.01"});
  CHECK(variants[3].loaded.experiment.strategy.kind == "ddp");
  CHECK(variants[3].loaded.experiment.optimizer.lr == 0.01);
  CHECK(variants[0].overrides == Names{"strategy.kind=single", "optimizer.lr=0.1"});  // of one process
  CHECK(variants[2].overrides == Names{"launch.nproc=2", "strategy.kind=ddp", "optimizer.lr=0.1"});
}

TEST_CASE("equal values of two keys are named with their keys") {
  const TempDir dir;
  const std::string file = dir.write("exp.toml", kConfig);
  const auto variants =
      variants_of_overrides(file, {{"data.sampler=random"}, {"data.sampler=\"random\"", "train.epochs=1"}}, {});
  CHECK(variants.size() == 2);
  CHECK(names_of(variants_of_overrides(file, {{"data.options.a=x"}, {"data.options.b=x"}}, {})) ==
        Names{"data.options.a=x", "data.options.b=x"});
}

TEST_CASE("variants are named after the file's stem, or after its path if stems are equal") {
  const TempDir dir;
  std::filesystem::create_directory(dir.path() / "old");
  const std::string a = dir.write("a.toml", kConfig), b = dir.write("b.toml", kConfig),
                    old = dir.write("old/a.toml", kConfig);
  CHECK(names_of(variants_of_files({a, b}, {})) == Names{"a", "b"});
  CHECK(names_of(variants_of_files({a, old}, {})) == Names{a, old});
  CHECK(contains(error_of([&] { variants_of_files({a, a}, {}); }), "2: a config is given twice"));
}

TEST_CASE("all errors of all variants are reported at once, each once") {
  const TempDir dir;
  const std::string file = dir.write("exp.toml", std::string(kConfig) + "epoch = 3\n");
  const std::string faults = error_of([&] { variants_of_grid(file, {"optimizer.lr=0.1,-1,x"}, {}); });
  CHECK_MESSAGE(contains(faults, "exp.toml:8:1"), faults);
  CHECK(contains(faults, "--vary optimizer.lr=-1"));
  CHECK(contains(faults, "--vary optimizer.lr=x"));
  CHECK(faults.find("exp.toml:8:1") == faults.rfind("exp.toml:8:1"));
}

TEST_CASE("variants that do different work are refused") {
  const TempDir dir;
  const std::string file = dir.write("exp.toml", kConfig);
  const auto refusal_of = [&](const std::string& vary,
                              const std::vector<std::string>& common = {"strategy.kind=ddp", "launch.nproc=2"}) {
    return error_of([&] { require_fair(variants_of_grid(file, {vary}, common)); });
  };
  CHECK(refusal_of("strategy.kind=single,ddp", {"launch.nproc=2"}) == "no error");
  CHECK(refusal_of("data.workers=0,4") == "no error");
  CHECK(refusal_of("optimizer.lr=0.1,0.2") == "no error");
  CHECK(refusal_of("experiment.seed=1,2") ==
        "2: compare: the variants do not do the same work; make it equal, or add --allow-different\n"
        "  experiment.seed: 1 in seed=1, 2 in seed=2");
  CHECK(contains(refusal_of("data.batch_size=32,64"), "global batch: 32 in batch_size=32, 64 in batch_size=64"));
  CHECK(contains(refusal_of("data.shuffle=true,false"), "data.shuffle: true in shuffle=true"));
  CHECK(contains(refusal_of("train.epochs=1,2"), "train.epochs: 1 in"));
  CHECK(contains(refusal_of("strategy.kind=single,ddp", {"data.batch_per=rank"}), "no error"));
  const auto per_rank = variants_of_grid(file, {"strategy.kind=single,ddp"}, {"launch.nproc=2", "data.batch_per=rank"});
  CHECK(unfair_differences(per_rank) == Names{"global batch: 32 in single, 64 in ddp"});
  CHECK(keys_that_differ(per_rank) == Names{"strategy.kind"});
}

TEST_CASE("names of folders") {
  CHECK(folder_name("gloo ring") == "gloo-ring");
  CHECK(folder_name("../lib.so lr=0.1") == "-.-lib.so-lr-0.1");
}

TEST_CASE("an error about a varied value names the option that the user typed, also in an error of the run") {
  const TempDir dir;
  const std::string file = dir.write("exp.toml", kConfig);
  const auto error = [&](const std::string& option) {
    return error_of([&] {
      variants_of_overrides(file, {{"train.epochs=0"}, {"train.epochs=3"}}, {"log.every=0"}, std::nullopt, option);
    });
  };
  CHECK(error("--vary") ==
        "2: --set log.every=0: log.every = 0: expected an integer of at least 1\n"
        "--vary train.epochs=0: train.epochs = 0: expected an integer of at least 1");
  CHECK(contains(error("--change"), "\n--change train.epochs=0: "));
  const Variant variant = variants_of_overrides(file, {{"data.root=x"}, {}}, {"log.every=1"})[0];
  CHECK(as_typed(variant, "--set data.root=x: no such folder") == "--vary data.root=x: no such folder");
  CHECK(as_typed(variant, "--set log.every=1: no") == "--set log.every=1: no");
}

TEST_CASE("without ddprun there is no run folder, and one line names what is missing") {
  const testing::InTempDir folder;
  CHECK(error_of([] { Runner({}, {}); }) ==
        "1: compare: needs ddprun, which is neither in the folder of ddprun-compare nor on PATH");
  CHECK(std::filesystem::is_empty("."));
}
