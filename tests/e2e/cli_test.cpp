// The command line: what it lists and refuses, and that a refusal starts and leaves nothing.
#include <doctest/doctest.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <regex>

#include "e2e/program.hpp"
#include "support/paths.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

const std::string kLinear = R"(
[launch]
nproc = 2
[comm]
backend = "gloo"
algorithm = "ring"
[strategy]
kind = "ddp"
[model]
name = "linear"
[data]
name = "linear"
batch_size = 64
)";

// `validate` and a run refuse the config with the same message; neither creates a file.
void check_refused(const std::string& text, int code, const std::vector<std::string>& expected) {
  Workplace place;
  const std::string config = place.config(text);
  const auto validated = place.ddprun({"validate", config});
  const auto started = place.run(place.training(config));
  CHECK(validated.code == code);
  CHECK(started.code == code);
  CHECK(started.err == validated.err);
  CHECK(started.out.empty());
  CHECK(validated.out.empty());
  for (const std::string& part : expected) CHECK_MESSAGE(contains(started.err, part), started.err);
  CHECK_FALSE(std::filesystem::exists(place.runs()));
  CHECK(place.leftovers().empty());
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = kLinear;
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST_CASE("a LibTorch that cannot be read is one line that names it, and the help needs none") {
  Workplace place;
  const auto without_torch = [&](const std::string& argument) {
    return place.run({"/usr/bin/unshare", "--mount", "sh", "-c", "mount -t tmpfs tmpfs \"$0\" && exec \"$@\"",
                      DDPRUN_TORCH_LIB, program(), argument});
  };
  const auto help = without_torch("--help");
  if (contains(help.err, "unshare: ") || contains(help.err, "mount: ")) {
    std::cout << "skipped: this user may not mount: " << help.err;
    return;
  }
  CHECK_MESSAGE(help.code == 0, help.err);
  const auto version = without_torch("version");
  CHECK(version.code == 1);
  CHECK_MESSAGE(version.err.starts_with("ddprun: failed: cannot read LibTorch, " DDPRUN_TORCH_LIB
                                        "/libtorch_cpu.so: No such file or directory; let this user read it, or "),
                version.err);
  CHECK(lines_of(version.err).size() == 1);
}

TEST_CASE("without arguments the help goes to stderr, and the code is that of a usage error") {
  const auto result = Workplace().ddprun({});
  CHECK(result.code == 2);
  CHECK(result.out.empty());
  CHECK(contains(result.err, "--config FILE"));
}

TEST_CASE("ddprun itself does not load LibTorch, which takes longer than what it does") {
  const auto libraries = Process({"/usr/bin/ldd", program()}, {}).wait(std::chrono::seconds(60));
  CHECK(libraries.code == 0);
  CHECK_MESSAGE(!contains(libraries.out, "torch"), libraries.out);
  CHECK(contains(libraries.out, "libstdc++"));
}

TEST_CASE("--help goes to stdout and names every command and exit code") {
  const auto result = Workplace().ddprun({"--help"});
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  for (const char* word : {"--config", "--set", "--plugin-path", "validate", "plugins", "Exit codes", "130 / 143"}) {
    CHECK(contains(result.out, word));
  }
}

TEST_CASE("the help of every command that loads plugins says where they are searched") {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{},
                                             {"validate"},
                                             {"evaluate"},
                                             {"plugins"},
                                             {"bench"},
                                             {"compare"},
                                             {"sweep"},
                                             {"doctor"},
                                             {"data", "info"},
                                             {"conformance"},
                                             {"conformance", "--dataset", "linear"},
                                             {"conformance", "--model", "linear"}}) {
    std::vector<std::string> argv = command;
    argv.emplace_back("--help");
    const auto result = Workplace().ddprun(argv);
    CAPTURE(result.out);
    CHECK(result.code == 0);
    for (const char* part : {"--plugin-path DIR", "DDPRUN_PLUGIN_PATH", "3. lib/ddprun/v1 of this ddprun",
                             "4. $XDG_DATA_HOME/ddprun/plugins/v1 (by default ~/.local/share/ddprun/plugins/v1)",
                             "5. /usr/local/lib/ddprun/v1", "DDPRUN_NO_DEEPBIND=1"}) {
      CHECK_MESSAGE(contains(result.out, part), part);
    }
  }
}

TEST_CASE("--version prints the versions of ddprun, Torch, the compiler, and each plugin's library") {
  const auto result = Workplace().ddprun({"--version"});
  CHECK(result.code == 0);
  CHECK_MESSAGE(!contains(result.out, "()"), result.out);  // shm has no library
  for (const char* line : {"ddprun \\d+\\.\\d+\\.\\d+", "torch \\d+\\.\\d+\\.\\d+.*", "compiler .*\\d+\\.\\d+.*",
                           "plugin comm gloo \\S+ \\(gloo \\d.*\\)", "plugin model linear \\S+ \\(torch \\d.*\\)",
                           "plugin model simplenet \\S+ \\(torch \\d.*\\)"}) {
    CAPTURE(line);
    const auto lines = lines_of(result.out);
    CHECK(std::any_of(lines.begin(), lines.end(),
                      [&](const std::string& text) { return std::regex_match(text, std::regex(line)); }));
  }
}

TEST_CASE("plugins lists kind, name, versions, description and path") {
  const auto result = Workplace().ddprun({"plugins"});
  CHECK(result.code == 0);
  for (const char* part : {"kind", "name", "version", "library", "about", "path", "comm ", "gloo", "ring tree",
                           "model ", "linear", "simplenet", "libddprun_comm_gloo.so", "libddprun_model_linear.so"}) {
    CHECK_MESSAGE(contains(result.out, part), result.out);
  }
}

TEST_CASE("plugins --verbose prints the options of each plugin, with type, default, range and meaning") {
  const auto result = Workplace().ddprun({"plugins", "--verbose"});
  CHECK(result.code == 0);
  const auto lines = lines_of(result.out);
  for (const char* line :
       {"comm.options of gloo:", "  interface +text +- +the network interface .*",
        "model.options of simplenet:", "  hidden +integer +256 +1 to 1000000 +width .*",
        "model.options of linear: none", "data.options of mnist:", "  std +real, ... +1 +1e-6 to 1e6 .*"}) {
    CAPTURE(line);
    CHECK_MESSAGE(std::any_of(lines.begin(), lines.end(),
                              [&](const std::string& text) { return std::regex_match(text, std::regex(line)); }),
                  result.out);
  }
}

TEST_CASE("plugins in a folder named by --plugin-path are listed, and a broken one is refused with its reason") {
  Workplace place;
  std::filesystem::create_directory(place.folder() / "mine");
  std::ofstream(place.folder() / "mine/libddprun_comm_mine.so") << "not a library";
  const auto result = place.ddprun({"plugins", "--plugin-path", (place.folder() / "mine").string()});
  CHECK(result.code == 0);
  const auto lines = lines_of(result.out);
  CHECK(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return contains(line, "mine") && contains(line, "refused") && contains(line, "cannot be loaded");
  }));
}

TEST_CASE("plugins lists those in the user's own folder, and says which one another hides") {
  Workplace place;
  const auto folder = place.folder() / "data/ddprun/plugins/v1";
  std::filesystem::create_directories(folder);
  for (const char* name : {"good", "gloo"}) {
    std::filesystem::copy_file(build_dir() + "/tests/fakes/libddprun_comm_good.so",
                               folder / ("libddprun_comm_" + std::string(name) + ".so"));
  }
  const auto result = place.ddprun({"plugins", "--verbose"});
  CHECK(result.code == 0);
  const std::string own = std::filesystem::path(program()).parent_path().parent_path() / "lib/ddprun/v1";
  const auto lines = lines_of(result.out);
  for (const std::string& line : {"comm +good +1\\.2\\.3 .*" + folder.string() + "/libddprun_comm_good.so",
                                  "comm +gloo +- +- +hidden by " + own + "/libddprun_comm_gloo.so +" + folder.string() +
                                      "/libddprun_comm_gloo.so",
                                  "looked in " + own + ", " + folder.string() + ", /usr/local/lib/ddprun/v1.*"}) {
    CAPTURE(line);
    CHECK_MESSAGE(std::count_if(lines.begin(), lines.end(),
                                [&](const std::string& text) { return std::regex_match(text, std::regex(line)); }) == 1,
                  result.out);
  }
  const auto version = lines_of(place.ddprun({"--version"}).out);
  CHECK(std::count_if(version.begin(), version.end(),
                      [](const std::string& line) { return line.starts_with("plugin comm gloo"); }) == 1);
}

TEST_CASE("an unknown argument is a usage error that names it") {
  Workplace place;
  const std::string config = place.config(kLinear);
  const auto check = [&](const std::vector<std::string>& arguments, const std::string& expected) {
    const auto result = place.ddprun(arguments);
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK_MESSAGE(contains(result.err, expected), result.err);
  };
  check({"--versoin"}, "unknown argument \"--versoin\" (did you mean \"--version\"?)");
  check({"validat", config}, "unknown argument \"validat\" (did you mean \"validate\"?)");
  check({"validate"}, "the experiment is missing: give FILE, or --config FILE; see ddprun validate --help");
  check({"--config"}, "ddprun: --config: its value is missing; see ddprun --help");
  check({"--config", config, "--plugin-path", "/nowhere"}, "--plugin-path /nowhere: no such folder");
  check({"bench", "--ranks", "two"}, "ddprun: --ranks = two: expected a number; see ddprun bench --help");
  check({"data", "info", "--smaple", "7"}, "(did you mean \"--sample\"?); see ddprun data info --help");
  check({"bench", "--json", "/nowhere/bench.json"}, "--json /nowhere/bench.json: there is no folder /nowhere");
  check({config, config}, "unknown argument \"" + config + "\"");
  check({"none.toml"}, "none.toml: cannot be read");
  check({config, "optimizer.lr=0.1"}, "to set a key, use --set optimizer.lr=0.1");
  check({"validate", config, "optimizer.lr=0.1"}, "to set a key, use --set optimizer.lr=0.1");
  check({config, "--lr", "0.1"},
        "unknown argument \"--lr\"; to set a key, use --set optimizer.lr=VALUE; see ddprun --help");
  check({config, "--data.batch-size=8"}, "to set a key, use --set data.batch_size=8");
  check({"validate", config, "--nproc", "2"}, "to set a key, use --set launch.nproc=VALUE; see ddprun validate --help");
  check({"compare", config, "--backend=gloo"}, "to set a key, use --set comm.backend=gloo");
  check({config, "--rank", "1"}, "unknown argument \"--rank\"");
  check({"plugins", "--backend", "gloo"}, "unknown argument \"--backend\"; see ddprun plugins --help");
  check({config, "--name", "x"}, "unknown argument \"--name\"; see");  // several tables have this key
  check({"--set", "train.steps=1"}, "the experiment is missing: give FILE, or --config FILE");
  check({"--config", config, "--set", "train.steps"}, "train.steps");
  check({"--config", (place.folder() / "none.toml").string()}, "none.toml: cannot be read");
  check({"--config", place.folder().string()}, "is a folder");
  CHECK_FALSE(std::filesystem::exists(place.runs()));
}

TEST_CASE("a config needs no --config, before or after other options, for each command that takes one") {
  Workplace place;
  const std::string config = place.config(kLinear);
  const std::vector<std::string> shared = {"--set", "train.steps=1", "--set",
                                           "experiment.output=" + place.runs().string()};
  const auto check = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), shared.begin(), shared.end());
    const auto result = place.ddprun(arguments);
    CHECK_MESSAGE(result.code == 0, result.err);
    return result;
  };
  const auto has_ranks = [](const ProcessResult& result, const std::string& count) {
    return std::regex_search(result.out, std::regex("\nworld size +" + count + "\n"));
  };
  CHECK(has_ranks(check({config}), "2"));
  const std::string run = place.new_run().string();
  CHECK(has_ranks(check({"--nproc", "1", config}), "1"));
  CHECK(contains(check({"validate", "--config", config}).out, ": ok"));
  CHECK(contains(check({"evaluate", config, "--checkpoint", run}).out, "test loss"));
}

TEST_CASE("more ranks than cores are allowed, and a line says what they cost") {
  Workplace place;
  cpu_set_t cores;
  REQUIRE(::sched_getaffinity(0, sizeof cores, &cores) == 0);
  int core = 0;
  while (!CPU_ISSET(core, &cores)) ++core;
  const auto result = place.run(Argv{"/usr/bin/taskset", "-c", std::to_string(core)} +
                                place.training(place.config(kLinear), {"train.steps=1", "launch.nproc=4"}));
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK_MESSAGE(contains(result.err, "4 ranks share 1 core: "), result.err);
  CHECK(contains(result.err, "a step may take 4 times as long, or more"));
}

TEST_CASE("validate prints ok and starts and creates nothing") {
  Workplace place;
  const std::string config = place.config(kLinear);
  const auto result = place.ddprun({"validate", config, "--set", "experiment.output=" + place.runs().string()});
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  CHECK(contains(result.out, config + ": ok"));
  CHECK(contains(result.out, "2 ranks"));
  CHECK_FALSE(std::filesystem::exists(place.runs()));
  CHECK(place.leftovers().empty());
}

TEST_CASE("validate checks each of several files, and returns the code of the first error") {
  Workplace place;
  const std::string good = place.config(kLinear, "good"), bad = place.config(with("\"ring\"", "\"rign\""), "bad"),
                    missing = place.config(with("\"gloo\"", "\"glo\""), "missing");
  const auto result = place.ddprun({"validate", missing, bad, good});
  CHECK(result.code == 3);
  CHECK(result.out == good + ": ok: 2 ranks, 32 samples per rank and step\n");
  CHECK_MESSAGE(contains(result.err, missing + ":5:11: comm.backend = \"glo\": "), result.err);
  CHECK_MESSAGE(contains(result.err, bad + ":6:13: comm.algorithm = \"rign\": "), result.err);
  CHECK(place.ddprun({"validate", good, bad, missing}).code == 2);
  CHECK(place.ddprun({"validate", good, good}).code == 0);
}

TEST_CASE("several ranks on the command line of a strategy that trains in one process are refused, not ignored") {
  Workplace place;
  const std::string config = place.config(kLinear);
  for (const char* kind : {"single", "dp"}) {
    const std::string strategy = std::string("strategy.kind=") + kind;
    const auto set = place.training(config, {strategy, "launch.nproc=2"});
    for (const Argv& argv : {set, place.training(config, {strategy}) + Argv{"-n", "2", "--quiet"},
                             Argv{program(), "validate", config, "--set", strategy, "--set", "launch.nproc=2"}}) {
      const auto result = place.run(argv);
      CHECK(result.code == 2);
      const std::string typed = argv.back() == "--quiet" ? "--nproc-per-node 2" : "--set launch.nproc=2";
      CHECK(result.err == typed + ": launch.nproc = 2: strategy.kind = \"" + kind +
                              "\" trains in one process; set strategy.kind = \"ddp\" for 2 ranks\n");
    }
    const auto one = place.run(place.training(config, {strategy, "train.steps=1"}) + Argv{"-n", "1"});
    CHECK_MESSAGE(one.code == 0, one.err);
  }
}

TEST_CASE("settings beyond the end of the run are reported by validate, and by a training before it starts ranks") {
  Workplace place;
  const std::string config = place.config(kLinear);
  for (const char* setting : {"log.trace_steps=[99999]", "train.warmup=99999"}) {
    const std::string key = std::string(setting).substr(0, std::string(setting).find('='));
    for (const auto& result :
         {place.ddprun({"validate", config, "--set", setting}), place.run(place.training(config, {setting}))}) {
      CHECK(result.code == 2);
      CHECK_MESSAGE(result.err.starts_with("--set " + std::string(setting) + ": " + key + " = "), result.err);
      CHECK(lines_of(result.err).size() == 1);
    }
  }
  CHECK_FALSE(std::filesystem::exists(place.runs()));
}

TEST_CASE("--set overrides keys in both commands, and its errors name it") {
  Workplace place;
  const std::string config = place.config(kLinear);
  const auto result = place.ddprun({"validate", config, "--set", "launch.nproc=4", "--set", "data.batch_size=32"});
  CHECK(result.code == 0);
  CHECK_MESSAGE(contains(result.out, "4 ranks, 8 samples"), result.out);
  const auto spaced = place.ddprun({"validate", config, "--set", "launch.nproc = 4", "--set", " data.batch_size =32 "});
  CHECK(spaced.out == result.out);
  const auto refused = place.run(place.training(config, {"comm.algorithm=rign"}));
  CHECK(refused.code == 2);
  CHECK_MESSAGE(contains(refused.err, "--set comm.algorithm=rign: "), refused.err);
  CHECK_MESSAGE(contains(refused.err, "did you mean \"ring\"?"), refused.err);
}

TEST_CASE("an unknown key is refused with its place and the nearest right name") {
  check_refused(with("nproc", "nprocs"), 2, {"exp.toml:3:1: launch.nprocs: unknown key (did you mean \"nproc\"?)"});
}

TEST_CASE("all errors of a file are reported together, each on a line with its place, in the order of the file") {
  std::string text = with("nproc = 2", "nproc = -2");
  text += "shufle = true\n[optimizer]\nname = \"sgdd\"\nlr = \"fast\"\n[train]\nepochs = 0\n";
  check_refused(text, 2,
                {"exp.toml:3:9: launch.nproc = -2: ", "exp.toml:14:1: data.shufle: unknown key",
                 "exp.toml:16:8: optimizer.name = \"sgdd\": ", "exp.toml:17:6: optimizer.lr = \"fast\": ",
                 "exp.toml:19:10: train.epochs = 0: "});
}

TEST_CASE("a syntax error is reported with its place") {
  check_refused("[model]\nname = linear\n", 2, {"exp.toml:2:"});
}

TEST_CASE("an algorithm that the plugin does not have is refused with the plugin's own list") {
  check_refused(with("\"ring\"", "\"rign\""), 2,
                {"exp.toml:6:13: comm.algorithm = \"rign\": expected \"auto\", \"ring\", \"tree\", "
                 "\"halving_doubling\", \"doubling\" or \"hierarchical\" "
                 "(did you mean \"ring\"?)"});
}

TEST_CASE("options that a plugin does not take are refused with 2, all at once, each with its place") {
  const std::string options = R"(
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
  check_refused(
      options, 2,
      {"exp.toml:6:25: comm.options.interfaec = \"lo\": backend \"gloo\" has no such option; expected \"interface\" or "
       "\"tuning\" (did you mean \"interface\"?)\n",
       "exp.toml:11:22: model.options.hidden = 0: expected a whole number from 1 to 1000000\n",
       "exp.toml:15:23: data.options.samples = 1.5: expected a whole number from 1 to 1000000000\n",
       "exp.toml:15:35: data.options.shap = \"3\": data set \"synthetic\" has no such option; expected \"shape\", ",
       "(did you mean \"shape\"?)"});
}

TEST_CASE("a missing plugin is refused with 3, with the searched folders and the available plugins") {
  check_refused(with("\"gloo\"", "\"glo\""), 3,
                {"exp.toml:5:11: comm.backend = \"glo\": ", "not found", "looked in /", "(did you mean \"gloo\"?)"});
  check_refused(
      with("\"linear\"", "\"lineer\""), 3,
      {"exp.toml:10:8: model.name = \"lineer\": ", "not found", "\"simplenet\"", "(did you mean \"linear\"?)"});
}

TEST_CASE("a plugin given by a path that does not exist is refused with 3") {
  check_refused(with("\"gloo\"", "\"/nowhere/libx.so\""), 3, {"comm.backend = \"/nowhere/libx.so\": ", "no such file"});
}

TEST_CASE("a plugin that ends the process when it is loaded is refused with 3, and never looks like a success") {
  const Workplace place;
  const std::string plugin = build_dir() + "/tests/fakes/libddprun_comm_exits.so";
  const std::string config = place.config(with("\"gloo\"", '"' + plugin + '"'));
  for (const auto& result : {place.run(place.training(config)), place.ddprun({"bench", "--backend", plugin}),
                             place.ddprun({"conformance", "--plugin", plugin})}) {
    CHECK(result.code == 3);
    CHECK_MESSAGE(contains(last_line(result.err), plugin), result.err);
    CHECK_MESSAGE(contains(last_line(result.err), "the child process ended with exit code 0"), result.err);
  }
}

TEST_CASE("missing data files are refused with 2, and the error says which files to put where") {
  check_refused(with("name = \"linear\"\nbatch", "name = \"mnist\"\nroot = \"/nowhere\"\nbatch"), 2,
                {"exp.toml:13:8: data.root = \"/nowhere\": /nowhere: no such folder; ",
                 "\"ddprun data fetch mnist --root /nowhere\" gets the files", ".gz"});
}

TEST_CASE("a relative data.root is searched from the config's folder, and the error says where that is") {
  const Workplace place;
  const std::string config = place.config(with("name = \"linear\"\nbatch", "name = \"mnist\"\nroot = \"here\"\nbatch"));
  const auto result = place.ddprun({"validate", config});
  CHECK(result.code == 2);
  CHECK_MESSAGE(contains(result.err, "data.root = \"here\": " + (place.folder() / "here: no such folder").string()),
                result.err);
}

TEST_CASE("an option that the model or the data set does not have is refused with 2") {
  check_refused(with("name = \"linear\"\n", "name = \"linear\"\noptions = { hiden = 5 }\n"), 2,
                {"exp.toml:11:", "hiden"});
  check_refused(kLinear + "options = { sample = 5 }\n", 2, {"exp.toml:14:", "sample", "did you mean \"samples\"?"});
}

TEST_CASE("a model that does not fit the data is refused with 2, at the model's name") {
  check_refused(with("name = \"linear\"\n", "name = \"simplenet\"\n"), 2,
                {"exp.toml:10:8: model.name = \"simplenet\": ", "classes"});
}

TEST_CASE("errors of plugin, algorithm and data are reported together") {
  std::string text = with("\"ring\"", "\"rign\"");
  text.replace(text.find("name = \"linear\"\nbatch"), 16, "name = \"mnist\"\nroot = \"/nowhere\"\n");
  text.replace(text.find("\"linear\""), 8, "\"lineer\"");
  check_refused(text, 2, {"comm.algorithm = \"rign\": ", "model.name = \"lineer\": ", "data.root = \"/nowhere\": "});
}

TEST_CASE("a batch that is not divisible by the ranks is refused with 2 and the nearest one that is") {
  check_refused(with("batch_size = 64", "batch_size = 63"), 2,
                {"exp.toml:13:14: data.batch_size = 63: ", "62 or 64", "data.batch_per = \"rank\""});
}

TEST_CASE("an epoch without a single step is refused, not repeated forever") {
  check_refused(kLinear + "last = \"drop\"\noptions = { samples = 1 }\n", 2, {"exp.toml:14:8: data.last = \"drop\": "});
}

TEST_CASE("a key that does not exist is refused, not ignored") {
  check_refused(with("nproc = 2", "nproc = 2\nnnodes = 2"), 2, {"launch.nnodes: unknown key"});
}

TEST_CASE("an option for several nodes without --nnodes is refused, also with one rank: each host would train alone") {
  Workplace place;
  const auto result = place.ddprun({"--config", place.config(with("nproc = 2", "nproc = 1")), "--node-rank", "1",
                                    "--set", "experiment.output=" + place.runs().string()});
  CHECK(result.code == 2);
  CHECK_MESSAGE(contains(result.err, "--node-rank is for several nodes: give --nnodes too"), result.err);
  CHECK_FALSE(std::filesystem::exists(place.runs()));
}

TEST_CASE("ddp without a distributed sampler is refused") {
  check_refused(kLinear + "sampler = \"random\"\n", 2, {"data.sampler = \"random\": ", "distributed"});
}

TEST_CASE("an output folder that cannot be created is a failure, 1, before any rank starts") {
  Workplace place;
  const auto result = place.run(place.training(place.config(kLinear), {"experiment.output=/proc/none"}));
  CHECK(result.code == 1);
  CHECK(contains(last_line(result.err), "ddprun: failed: experiment.output: cannot create folder /proc/none: "));
  CHECK(place.leftovers().empty());
}

TEST_CASE("an error of a key that an option sets names the option") {
  Workplace place;
  const auto result = place.ddprun({place.config(kLinear), "--nproc-per-node", "2000"});
  CHECK(result.code == 2);
  CHECK(result.err.starts_with("--nproc-per-node 2000: launch.nproc = 2000: expected an integer from 1 to 1024"));
}

// The shell command on `argv`, as "$0" "$@" or the like.
ProcessResult run_in_shell(const Workplace& place, const std::string& command, const Argv& argv) {
  return place.run(Argv{"/bin/bash", "-c", command} + argv);
}

TEST_CASE("a config from a pipe or a redirected file is validated, trains on one rank and on two, and starts again") {
  Workplace place;
  const std::string config = place.config(kLinear);
  const std::string piped = "cat " + config + " | \"$0\" \"$@\"", redirected = "\"$0\" \"$@\" < " + config;
  const std::string fifo = (place.folder() / "fifo").string();
  const Argv few = {"data.options.samples=128", "train.epochs=1"};
  for (const std::string& command : {piped, redirected}) {
    const auto result = run_in_shell(place, command, place.training("/dev/stdin", few));
    CHECK_MESSAGE(result.code == 0, result.err);
    CHECK(contains(result.err, "world size  2"));
    place.new_run();
  }
  const auto single = run_in_shell(place, piped, place.training("/dev/stdin", few + Argv{"strategy.kind=single"}));
  CHECK_MESSAGE(single.code == 0, single.err);
  place.new_run();
  const auto again =
      run_in_shell(place, "mkfifo " + fifo + " && { cat " + config + " > " + fifo + " & \"$0\" \"$@\"; }",
                   place.training(fifo, few + Argv{"launch.max_restarts=1", "faults.kind=kill"}));
  CHECK_MESSAGE(again.code == 0, again.err);
  CHECK(contains(again.err, "world size  2"));
  const auto wrong = run_in_shell(place, piped, place.training("/dev/stdin", {"comm.backend=glo"}));
  CHECK(wrong.code == 3);
  const auto refused = run_in_shell(place, "echo nproc = 2 | \"$0\" \"$@\"", place.training("/dev/stdin"));
  CHECK(refused.code == 2);
  CHECK_MESSAGE(contains(refused.err, "/dev/stdin:1:1: nproc: "), refused.err);
  const auto empty = run_in_shell(place, "true | \"$0\" \"$@\"", place.training("/dev/stdin"));
  CHECK(empty.code == 2);
  CHECK_MESSAGE(empty.err.starts_with("/dev/stdin: is empty; "), empty.err);
  CHECK(place.leftovers().empty());
}

TEST_CASE("the line that resumes a run from a pipe has the config of its folder, and no fault") {
  Workplace place;
  const auto killed =
      run_in_shell(place, "cat " + place.config(kLinear) + " | \"$0\" \"$@\"",
                   place.training("/dev/stdin", {"data.options.samples=128", "train.epochs=4", "faults.kind=kill",
                                                 "faults.step=3", "checkpoint.every_steps=2"}));
  CHECK(killed.code == 5);
  const std::string run = place.new_run().string();
  CHECK_MESSAGE(contains(killed.err, "to resume: ddprun --config " + run + "/config.toml --set "), killed.err);
  CHECK(!contains(killed.err, "--set faults."));
}

TEST_CASE("output that a full stdout does not take ends with 1 and one line") {
  if (!std::filesystem::is_character_file("/dev/full")) {
    std::cout << "skipped: there is no /dev/full" << std::endl;
    return;
  }
  Workplace place;
  const std::string config = place.config(kLinear);
  const auto check = [&](const Argv& argv) {
    CAPTURE(argv.back());
    const auto result = run_in_shell(place, "exec \"$0\" \"$@\" > /dev/full", argv);
    CHECK(result.code == 1);
    CHECK_MESSAGE(contains(last_line(result.err), "ddprun: failed: cannot write the output to stdout"), result.err);
  };
  const std::string ddprun = place.training(config).front();
  for (const Argv& arguments :
       std::vector<Argv>{{"--help"},
                         {"help"},
                         {"version"},
                         {"plugins"},
                         {"validate", config},
                         {"bench", "--help"},
                         {"bench", "-b", "4", "-e", "4", "-n", "1", "-w", "0", "--rounds", "1"}}) {
    check(Argv{ddprun} + arguments);
  }
  check(place.training(config, {"data.options.samples=64"}));
  place.new_run();
  check(place.training(config, {"strategy.kind=single", "data.options.samples=64"}));
  check({ddprun, "evaluate", "--checkpoint", place.new_run().string()});
}

TEST_CASE("keys that the strategy does not use are allowed, and reported") {
  Workplace place;
  const auto result =
      place.run(place.training(place.config(kLinear), {"strategy.kind=single", "data.options.samples=64"}));
  CHECK(result.code == 0);
  CHECK_MESSAGE(
      contains(result.err,
               "not used by strategy \"single\" on device \"cpu\": comm.algorithm, comm.backend, launch.nproc"),
      result.err);
}

}  // namespace
