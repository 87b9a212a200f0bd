#include <doctest/doctest.h>

#include <fstream>

#include "cli/config/keys.hpp"
#include "support/paths.hpp"
#include "support/text.hpp"
#include "written.hpp"

using namespace ddprun;
using ddprun::testing::contains;

namespace {

const std::string source = ddprun::testing::source_dir();

config::Experiment shipped(const std::string& name) {
  return config::load(source + "/configs/" + name, {}).experiment;
}

// The start of the key's row in docs/config.md. Its meaning follows, after a note on a default that is computed.
std::string row_of(const config::Key& key) {
  config::Experiment defaults;
  const std::string value = config::value_text(key, defaults);
  std::string shown = value.empty() ? "" : "`" + value + "`" + (key.computed_default ? ": " : " | ");
  if (!key.example.empty()) shown = "(required) | ";
  return "| `" + key.name() + "` | " + config::expectation(key) + " | " + shown;
}

}  // namespace

TEST_CASE("docs/config.md has a row for each key, in order, with its values, its default and where it may differ") {
  std::ifstream file(source + "/docs/config.md");
  std::string table;
  auto key = config::keys().begin();
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## [")) table = line.substr(4, line.find(']') - 4);
    if (!line.starts_with("| `")) continue;
    REQUIRE(key != config::keys().end());
    CAPTURE(line);
    CHECK(key->path == (table.empty() ? "" : table + ".") + key->name());
    CHECK_MESSAGE(line.starts_with(row_of(*key)), "docs/config.md: expected a row that begins with: " << row_of(*key));
    CHECK(line.ends_with(". |"));
    CHECK((key->user != nullptr) == contains(line, " Used "));
    CHECK(key->per_host == contains(line, "May differ between hosts."));
    for (const std::string& option : key->per_host_options) CHECK(contains(line, "`" + option + "`"));
    CHECK((table.empty() || config::is_table(table)));
    CHECK(config::find_key(key->path) == &*key);
    ++key;
  }
  CHECK(key == config::keys().end());
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
