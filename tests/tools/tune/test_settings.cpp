#include "tools/tune/model.hpp"

#include <doctest/doctest.h>

#include "support/contains.hpp"
#include "support/error_of.hpp"
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

TEST_CASE("the changed config loads, and differs from the first one by these lines only") {
  const InTempDir folder;
  folder.write("exp.toml", kText);
  const auto before = config::load("exp.toml", {"optimizer.lr=0.5"}).experiment;
  const Settings chosen = {"ucx", "ring", 5, "bf16"};
  const std::string text =
      tune::changed_config("exp.toml", {"optimizer.lr=0.5"}, tune::changes(tune::settings_of(before), chosen));
  CHECK_FALSE(contains(text, "mine"));
  folder.write("other.toml", text);
  auto after = config::load("other.toml", {}).experiment;
  CHECK(tune::settings_of(after) == chosen);
  CHECK(after.data.root == (std::filesystem::current_path() / "images").string());
  after.comm = before.comm;
  after.strategy = before.strategy;
  after.data.root = before.data.root;
  CHECK(after == before);
}
