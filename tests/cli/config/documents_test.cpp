#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "cli/config/keys.hpp"
#include "support/paths.hpp"
#include "written.hpp"

using namespace ddprun;

namespace {

const std::string source = ddprun::testing::source_dir();

config::Experiment shipped(const std::string& name) {
  return config::load(source + "/configs/" + name, {}).experiment;
}

}  // namespace

TEST_CASE("docs/config.md") {
  const std::string path = source + "/docs/config.md";
  if (std::getenv("DDPRUN_UPDATE_DOCS") != nullptr) std::ofstream(path, std::ios::binary) << config::to_markdown();
  std::ifstream file(path, std::ios::binary);
  const std::string committed{std::istreambuf_iterator<char>(file), {}};
  const bool fresh = committed == config::to_markdown();
  CHECK_MESSAGE(fresh,
                "docs/config.md is stale: run this test with DDPRUN_UPDATE_DOCS=1 in the environment, and commit it");
}

TEST_CASE("every key has a sentence, an existing table, and a row with its default in docs/config.md") {
  const std::string text = config::to_markdown();
  for (const config::Key& key : config::keys()) {
    CAPTURE(key.path);
    CHECK(key.meaning.ends_with("."));
    CHECK((key.table().empty() || config::is_table(key.table())));
    CHECK(config::find_key(key.path) == &key);
    CHECK(text.find("\n| `" + key.name() + "` | ") != std::string::npos);
  }
  const auto row = [&](const std::string& start) { return text.find("\n" + start) != std::string::npos; };
  CHECK(row("| `batch_size` | an integer from 1 to 16777216 | `64` | "));
  CHECK(row("| `timeout` | a duration from \"1ms\" to \"24h\", such as \"30s\" | `\"30s\"` | "));
  CHECK(row("| `lr` | a number of at least 0 | `0.01` | "));
  CHECK(row("| `betas` | two numbers from 0 to below 1 | `[0.9, 0.999]` | "));
  CHECK(row("| `epochs` | an integer of at least 1 | 1 where steps is not given | "));
}

TEST_CASE("the defaults have not changed") {
  const config::Experiment e;
  CHECK(e.experiment.seed == 42);
  CHECK(e.comm.backend == "gloo");
  CHECK(e.strategy.kind == "single");
  CHECK(e.strategy.bucket_cap_mb == 25.0);
  CHECK(e.launch.timeout == 30.0);
  CHECK(e.checkpoint.keep == 2);
}

TEST_CASE("every default is valid for its key") {
  config::Experiment e;
  const std::string any = "x";
  e.model.name = e.data.name = any;
  CHECK(testing::errors_of(config::to_toml(e)) == "");
}

TEST_CASE("configs/quickstart.toml is Fashion-MNIST on two ranks over Gloo") {
  const config::Experiment e = shipped("quickstart.toml");
  CHECK(e.experiment.name == "quickstart");
  CHECK(e.model.name == "simplenet");
  CHECK(e.data.name == "fashion-mnist");
  CHECK(e.data.root.empty());  // the folder of Debian's package
  CHECK(e.data.batch_size == 128);
  CHECK(e.data.batch_per == "global");
  CHECK(e.launch.nproc == 2);
  CHECK(e.strategy.kind == "ddp");
  CHECK(e.comm.backend == "gloo");
  CHECK(e.optimizer.name == "adam");
  CHECK(e.optimizer.lr == 1e-3);
  CHECK(e.train.epochs == 2);
}
