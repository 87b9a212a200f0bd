#include "tools/tune/model.hpp"

#include <doctest/doctest.h>

#include "testing/temp_dir.hpp"

using namespace ddprun;
using namespace ddprun::testing;
using tune::Settings;

namespace {

constexpr const char* kText =
    "# mine\n[model]\nname = \"simplenet\"\n[data]\nname = \"mnist\"\nroot = \"images\"\n[strategy]\nkind = \"ddp\"\n"
    "[train]\nsteps = 100\n";

}  // namespace

TEST_CASE("changes are the keys that differ, those of a table together") {
  const Settings own = {"gloo", "auto", 25, "none"};
  CHECK(tune::changes(own, own).empty());
  const auto all = tune::changes(own, {"/opt/my.so", "ring", 2.5, "bf16"});
  CHECK(tune::to_toml(all) ==
        "[comm]\nbackend = \"/opt/my.so\"\nalgorithm = \"ring\"\n"
        "[strategy]\nbucket_cap_mb = 2.5\ncompression = \"bf16\"\n");
  std::vector<std::string> overrides;
  for (const auto& change : all) overrides.push_back(change.override_text());
  CHECK(overrides == std::vector<std::string>{"comm.backend=\"/opt/my.so\"", "comm.algorithm=ring",
                                              "strategy.bucket_cap_mb=2.5", "strategy.compression=bf16"});
  CHECK(tune::to_toml(tune::changes(own, {"gloo", "auto", 50, "none"})) == "[strategy]\nbucket_cap_mb = 50\n");
}

TEST_CASE("the changes as overrides give the chosen settings, and change nothing else") {
  const InTempDir folder;
  folder.write("exp.toml", kText);
  const auto before = config::load("exp.toml", {}).experiment;
  const Settings chosen = {"/opt/my.so", "ring", 5, "bf16"};
  std::vector<std::string> overrides;
  for (const auto& change : tune::changes(tune::settings_of(before), chosen)) {
    overrides.push_back(change.override_text());
  }
  auto after = config::load("exp.toml", overrides).experiment;
  CHECK(tune::settings_of(after) == chosen);
  after.comm = before.comm;
  after.strategy = before.strategy;
  CHECK(config::to_toml(after) == config::to_toml(before));
}
