// What is refused before anything starts: configs, by `validate` and by a run alike, and command lines.
#include <doctest/doctest.h>

#include <filesystem>
#include <regex>

#include "e2e/program.hpp"
#include "support/golden.hpp"
#include "support/paths.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// Without what differs between machines: the folder of the test, where plugins are searched, and which ones there are.
std::string neutral(std::string text, const Workplace& place) {
  const std::string folder = place.folder().string();
  for (std::size_t at; (at = text.find(folder)) != std::string::npos;) text.replace(at, folder.size(), "PLACE");
  const std::regex found("looked in /.*?; there is \"[^(\n]*");
  return std::regex_replace(text, found, "looked in FOLDERS; there is PLUGINS ");
}

// "exit 2: " and the message. Nothing else is left.
std::string refusal(const Workplace& place, const Argv& argv) {
  const auto result = place.run(argv);
  CHECK(result.out.empty());
  CHECK_FALSE(std::filesystem::exists(place.runs()));
  CHECK(place.leftovers().empty());
  return "exit " + std::to_string(result.code) + ": " + neutral(result.err, place);
}

const std::string kOptions = R"(
[launch]
nproc = 2
[comm]
backend = "gloo"
options = { interfaec = "lo", tuning = "" }
[strategy]
kind = "ddp"
[model]
name = "simplenet"
options = { hidden = 0 }
[data]
name = "synthetic"
batch_size = 64
options = { samples = 1.5, shap = "3" }
)";

}  // namespace

TEST_CASE("`validate` and a run refuse a config with the same message, as in refused_configs.txt") {
  const std::string data = "name = \"linear\"\nbatch", bad_ring = with(kLinearOnTwoRanks, "\"ring\"", "\"rign\"");
  const std::pair<const char*, std::string> configs[] = {
      {"an unknown key", with(kLinearOnTwoRanks, "nproc", "nprocs")},
      {"a key that does not exist", with(kLinearOnTwoRanks, "nproc = 2", "nproc = 2\nnnodes = 2")},
      {"several errors", with(kLinearOnTwoRanks, "nproc = 2", "nproc = -2") +
                             "shufle = true\n[optimizer]\nname = \"sgdd\"\nlr = \"fast\"\n[train]\nepochs = 0\n"},
      {"a syntax error", "[model]\nname = linear\n"},
      {"an algorithm that the plugin does not have", bad_ring},
      {"options that no plugin has, and values that none takes", kOptions},
      {"a comm plugin that is missing", with(kLinearOnTwoRanks, "\"gloo\"", "\"glo\"")},
      {"a model plugin that is missing", with(kLinearOnTwoRanks, "\"linear\"", "\"lineer\"")},
      {"a plugin whose path does not exist", with(kLinearOnTwoRanks, "\"gloo\"", "\"/nowhere/libx.so\"")},
      {"data files that are missing", with(kLinearOnTwoRanks, data, "name = \"mnist\"\nroot = \"/nowhere\"\nbatch")},
      {"a relative data.root", with(kLinearOnTwoRanks, data, "name = \"mnist\"\nroot = \"here\"\nbatch")},
      {"an option that the model does not have",
       with(kLinearOnTwoRanks, "name = \"linear\"\n", "name = \"linear\"\noptions = { hiden = 5 }\n")},
      {"an option that the data set does not have", kLinearOnTwoRanks + "options = { sample = 5 }\n"},
      {"a model that does not fit the data", with(kLinearOnTwoRanks, "\"linear\"", "\"simplenet\"")},
      {"an algorithm, a model and data, all wrong",
       with(with(bad_ring, data, "name = \"mnist\"\nroot = \"/nowhere\"\nbatch"), "\"linear\"", "\"lineer\"")},
      {"a batch that the ranks do not divide", with(kLinearOnTwoRanks, "batch_size = 64", "batch_size = 63")},
      {"an epoch without a step", kLinearOnTwoRanks + "last = \"drop\"\noptions = { samples = 1 }\n"},
      {"ddp without a distributed sampler", kLinearOnTwoRanks + "sampler = \"random\"\n"},
      {"a traced step beyond the end", kLinearOnTwoRanks + "[log]\ntrace_steps = [99999]\n"},
      {"a warm-up beyond the end", kLinearOnTwoRanks + "[train]\nwarmup = 99999\n"},
  };
  std::string text;
  for (const auto& [title, config] : configs) {
    CAPTURE(title);
    const Workplace place;
    const std::string path = place.config(config);
    const std::string refused = refusal(place, {program(), "validate", path});
    CHECK(refusal(place, place.training(path)) == refused);
    text += std::string("## ") + title + "\n" + refused;
  }
  check_golden("e2e/refused_configs.txt", text);
}

TEST_CASE("a wrong command line is refused with one line, as in refused_arguments.txt") {
  const Workplace place;
  const std::string config = place.config(kLinearOnTwoRanks), folder = place.folder().string();
  const Argv command_lines[] = {
      {"--versoin"},
      {"validat", config},
      {"validate"},
      {"--config"},
      {"--config", config, "--plugin-path", "/nowhere"},
      {"bench", "--ranks", "two"},
      {"data", "info", "--smaple", "7"},
      {"bench", "--json", "/nowhere/bench.json"},
      {config, config},
      {"none.toml"},
      {config, "optimizer.lr=0.1"},
      {config, "--lr", "0.1"},
      {config, "--rank", "1"},
      {"plugins", "--backend", "gloo"},
      {"--set", "train.steps=1"},
      {"--config", config, "--set", "train.steps"},
      {"--config", config, "--set", "comm.algorithm=rign"},
      {"--config", folder + "/none.toml"},
      {"--config", folder},
      {config, "--nproc-per-node", "2000"},
      {config, "--node-rank", "1"},
      {config, "--set", "launch.nproc=1", "--node-rank", "1"},  // one rank: each host would train alone
      {config, "--set", "strategy.kind=single", "--set", "launch.nproc=2"},
      {config, "--set", "strategy.kind=dp", "-n", "2"},
      {"validate", config, "--set", "strategy.kind=dp", "--set", "launch.nproc=2"},
  };
  std::string text;
  for (const Argv& arguments : command_lines) {
    text += "$ ddprun";
    for (const std::string& argument : arguments) text += " " + neutral(argument, place);
    text += "\n" + refusal(place, Argv{program()} + arguments);
  }
  check_golden("e2e/refused_arguments.txt", text);
}

TEST_CASE("a plugin that ends the process when it is loaded is refused with 3, and never looks like a success") {
  const Workplace place;
  const std::string plugin = build_dir() + "/tests/fakes/libddprun_comm_exits.so";
  const std::string config = place.config(with(kLinearOnTwoRanks, "\"gloo\"", '"' + plugin + '"'));
  for (const auto& result : {place.run(place.training(config)), place.ddprun({"bench", "--backend", plugin}),
                             place.ddprun({"conformance", "--plugin", plugin})}) {
    CHECK(result.code == 3);
    CHECK_MESSAGE(contains(last_line(result.err), plugin), result.err);
    CHECK_MESSAGE(contains(last_line(result.err), "the child process ended with exit code 0"), result.err);
  }
}

TEST_CASE("an output folder that cannot be created is a failure, 1, before any rank starts") {
  Workplace place;
  const auto result = place.run(place.training(place.config(kLinearOnTwoRanks), {"experiment.output=/proc/none"}));
  CHECK(result.code == 1);
  CHECK(contains(last_line(result.err), "ddprun: failed: experiment.output: cannot create folder /proc/none: "));
  CHECK(place.leftovers().empty());
}
