// What other modules use after load(): their errors, suggestions, unused keys.
#include <doctest/doctest.h>

#include "ddprun/plugin/words.hpp"
#include "written.hpp"

using namespace ddprun;
using testing::load_text;
using testing::required;

TEST_CASE("an error found later names the key's location and value") {
  const config::Sources sources =
      load_text("[comm]\nalgorithm = \"rign\"\noptions.speed = 3" + required, {"comm.backend=glo"}).sources;
  CHECK(config::error(sources, "comm.algorithm", expected_one_of("rign", {"auto", "ring", "tree"})) ==
        sources.file +
            ":2:13: comm.algorithm = \"rign\": expected \"auto\", \"ring\" or \"tree\" (did you mean \"ring\"?)");
  CHECK(config::error(sources, "comm.options.speed", "unknown") ==
        sources.file + ":3:17: comm.options.speed = 3: unknown");
  CHECK(config::error(sources, "comm.backend", "not found") ==
        "--set comm.backend=glo: comm.backend = \"glo\": not found");
  CHECK(config::error(sources, "launch.nproc", "too few") ==
        sources.file + ": launch.nproc = 1 (the default): too few");
  CHECK(config::error(sources, "data.root", "needed") == sources.file + ": data.root: needed");
  CHECK(config::error(sources, "model.options.depth", "needed") == sources.file + ": model.options.depth: needed");
}

TEST_CASE("keys that the strategy or the optimizer does not use are named") {
  const auto unused = [](const std::string& text, const std::vector<std::string>& overrides) {
    const config::Loaded loaded = load_text(text + required, overrides);
    return config::unused_keys(loaded.experiment, loaded.sources);
  };
  const std::string text =
      "comm = { backend = 'gloo', options = { a = 1 } }\nstrategy = { devices = 2, bucket_cap_mb = 3 }\n"
      "optimizer = { eps = 1e-7, momentum = 0.9 }\n";
  CHECK(unused(text, {}) == std::vector<std::string>{"comm.backend", "comm.options.a", "optimizer.eps",
                                                     "strategy.bucket_cap_mb", "strategy.devices"});
  CHECK(unused(text, {"strategy.kind=ddp", "optimizer.name=adam"}) ==
        std::vector<std::string>{"optimizer.momentum", "strategy.devices"});
  CHECK(unused(text, {"strategy.kind=dp"}) ==
        std::vector<std::string>{"comm.backend", "comm.options.a", "optimizer.eps", "strategy.bucket_cap_mb"});
  CHECK(unused("", {"strategy.kind=single", "launch.nproc=2"}) ==
        std::vector<std::string>{"launch.nproc"});  // a key of ddp, in a file that is varied
  CHECK(unused("", {"data.shuffle=true", "data.sampler=sequential"}) == std::vector<std::string>{"data.shuffle"});
  CHECK(unused("", {}).empty());
}

TEST_CASE("on a CPU, keys that only a GPU uses are allowed and reported") {
  const auto unused = [](const std::string& text) {
    const config::Loaded loaded = load_text(text, {"model.name=linear", "data.name=linear"});
    return config::unused_keys(loaded.experiment, loaded.sources);
  };
  CHECK(unused("launch.devices = [1, 0]\ndata.pin_memory = false\ntrain.cudnn_benchmark = true") ==
        std::vector<std::string>{"data.pin_memory", "launch.devices", "train.cudnn_benchmark"});
  CHECK(unused("data.pin_memory = false\nlaunch.device = 'cuda'").empty());
}
