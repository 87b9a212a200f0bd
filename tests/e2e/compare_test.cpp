// `ddprun compare` with real runs: output, files, refusals, and exit codes. Times depend on the machine and are not
// checked.
#include <doctest/doctest.h>

#include <csignal>

#include "e2e/compared.hpp"
#include "e2e/program.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;
using namespace std::chrono_literals;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

json comparison_of(const fs::path& folder) {
  return json::parse(read_file(folder / "compare.json"));
}

std::size_t count_folders(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("ring against tree: two alternating runs of each, tables, compare.json and a page") {
  Workplace place;
  const std::string config = place.config(kRing);
  const auto result = place.ddprun(
      comparing(place, {config, "--vary", "comm.algorithm=ring,tree", "--repeats", "2", "--parity-steps", "0"}));
  CHECK_MESSAGE(result.code == 0, result.err);
  const fs::path folder = place.new_run();
  for (const char* part :
       {"Where a step's time goes", "exposed communication", "Do they learn the same?", "comparison folder: "}) {
    CHECK_MESSAGE(contains(result.out, part), result.out);
  }
  // Two runs on a busy machine may not decide which one is slower.
  CHECK((contains(result.out, "Why not faster? ") || contains(result.out, "The largest part of a step: ")));
  std::vector<std::string> turns;
  for (const std::string& line : lines_of(result.err)) {
    if (contains(line, "round ")) turns.push_back(line.substr(0, line.find(" a step") - 8));
  }
  REQUIRE_MESSAGE(turns.size() == 4, result.err);
  CHECK(contains(turns[0], "round 1 of 2: ring"));
  CHECK(contains(turns[1], "round 1 of 2: tree"));
  CHECK(contains(turns[2], "round 2 of 2: tree"));
  CHECK(contains(turns[3], "round 2 of 2: ring"));

  const json object = comparison_of(folder);
  CHECK(object.at("interleaved") == true);
  CHECK(object.at("differing_keys") == json::array({"comm.algorithm"}));
  REQUIRE(object.at("variants").size() == 2);
  for (const json& variant : object.at("variants")) {
    REQUIRE(variant.at("runs").size() == 2);
    CHECK(variant.at("median").at("algorithm") == variant.at("name"));
    CHECK(variant.at("median").at("samples") == 18 * 32);
    double sum = 0;
    const json& run = variant.at("runs")[0];
    for (const auto& [part, seconds] : run.at("split").items()) sum += seconds.get<double>();
    CHECK(sum == doctest::Approx(run.at("step").get<double>()));
    CHECK(run.at("step").get<double>() * 18 == doctest::Approx(run.at("total_time").get<double>()));
    CHECK(fs::exists(run.at("folder").get<std::string>() + "/summary.json"));
  }
  const json& against = object.at("against_first")[0];
  CHECK(against.at("name") == "tree");
  CHECK(against.at("parity").at("loss_steps") == 20);
  CHECK(against.at("parity").at("first_step_distance") <= against.at("parity").at("first_step_bound"));
  CHECK(contains(read_file(folder / "report.html"), "Performance gain"));
  CHECK(count_folders(folder / "runs") == 4);
  CHECK(place.leftovers().empty());
}

TEST_CASE("the first steps of ring and tree: equal ranks, equal runs, differences by rounding at most") {
  Workplace place;
  const auto result =
      place.ddprun(comparing(place, {"--config", place.config(kRing), "--vary", "comm.algorithm=ring,tree", "--repeats",
                                     "1", "--parity-steps", "2"}));
  CHECK_MESSAGE(result.code == 0, result.err);
  const fs::path folder = place.new_run();
  CHECK(count_folders(folder / "runs") == 6);
  const json object = comparison_of(folder);
  for (const json& variant : object.at("variants")) {
    // With two ranks the backend's sum is the same on both, and in every run.
    CHECK(variant.at("parity").at("steps") == 2);
    CHECK(variant.at("parity").at("ranks") == 2);
    CHECK(variant.at("parity").at("ranks_part").is_null());
    CHECK(variant.at("parity").at("runs_equal") == true);
  }
  const json& parity = object.at("against_first")[0].at("parity");
  CHECK(parity.at("tensor_steps") == 2);
  CHECK(parity.at("first_step_distance") <= parity.at("first_step_bound"));
}

TEST_CASE("single against ddp has the speed-up table; an A/A twin is shown next to it") {
  Workplace place;
  const auto result =
      place.ddprun(comparing(place, {"--config", place.config(kRing), "--vary", "strategy.kind=single,ddp", "--aa",
                                     "--repeats", "1", "--parity-steps", "0", "--quiet"}));
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK(result.err.empty());
  CHECK(contains(result.out, "Speed-up over one worker"));
  CHECK_FALSE(contains(result.out, "tutorial"));
  CHECK(contains(result.out, "Noise floor: single (twin) and single: no verdict from a single run"));
  const json object = comparison_of(place.new_run());
  CHECK(object.at("variants")[1].at("twin") == true);
  CHECK(object.at("variants")[1].at("name") == "single (twin)");
  // One process gives the same results twice; ddp's losses match single's except for rounding.
  CHECK(object.at("against_first")[0].at("parity").at("first_other_loss") == 0);
  const json& parity = object.at("against_first")[1].at("parity");
  CHECK(parity.at("first_step_distance") <= parity.at("first_step_bound"));
}

TEST_CASE("gates: one that always passes, and one that always fails") {
  Workplace place;
  const std::string config = place.config(kRing);
  const std::vector<std::string> common = {
      "--config",       config, "--vary", "optimizer.lr=0.01,0.02", "--repeats", "3",
      "--parity-steps", "0",    "--set",  "strategy.kind=single"};
  auto arguments = comparing(place, common);
  arguments.insert(arguments.end(), {"--gate", "2/1 <= 1e9", "--gate", "lr=0.02/lr=0.01 <= 1e-9"});
  const auto result = place.ddprun(arguments);
  CHECK(result.code == 6);
  CHECK(contains(result.out, "gate '2/1 <= 1e9' holds"));
  CHECK(contains(last_line(result.err), "gate 'lr=0.02/lr=0.01 <= 1e-9' does not hold"));
  const json gates = comparison_of(place.new_run()).at("gates");
  CHECK(gates[0].at("holds") == true);
  CHECK(gates[1].at("holds") == false);
}

TEST_CASE("earlier runs can be compared, and are marked") {
  Workplace place;
  const std::string config = place.config(kRing);
  std::vector<std::string> dirs;
  for (const char* algorithm : {"ring", "ring", "tree"}) {
    REQUIRE(place.run(place.training(config, {std::string("comm.algorithm=") + algorithm})).code == 0);
    dirs.push_back(place.new_run().string());
  }
  const auto grouped = place.ddprun(comparing(place, {"--runs", dirs[0], dirs[1], "--runs", dirs[2]}));
  CHECK_MESSAGE(grouped.code == 0, grouped.err);
  CHECK(contains(grouped.out, "not interleaved"));
  const json object = comparison_of(place.new_run());
  CHECK(object.at("interleaved") == false);
  CHECK(object.at("variants")[0].at("runs").size() == 2);
  const auto listed = place.ddprun(comparing(place, dirs));
  CHECK_MESSAGE(listed.code == 0, listed.err);
  CHECK(comparison_of(place.new_run()).at("variants")[0].at("runs").size() == 2);

  const auto mixed = place.ddprun(comparing(place, {"--runs", dirs[0], dirs[2], "--runs", dirs[1]}));
  CHECK(mixed.code == 2);
  CHECK_MESSAGE(contains(mixed.err, "comm.algorithm differs from that in"), mixed.err);
  fs::remove(fs::path(dirs[2]) / "summary.json");
  const auto cut = place.ddprun(comparing(place, dirs));
  CHECK(cut.code == 2);
  CHECK_MESSAGE(contains(cut.err, "summary.json: missing: the run has not ended"), cut.err);
}

TEST_CASE("errors are reported before anything runs") {
  Workplace place;
  const std::string config = place.config(kRing);
  const auto refused = [&](const std::vector<std::string>& more, const std::string& what) {
    const auto result = place.ddprun(comparing(place, more));
    CHECK(result.code == 2);
    CHECK_MESSAGE(contains(result.err, what), result.err);
    CHECK(result.out.empty());
  };
  refused({}, "expected two or more configs");
  refused({config}, "there is one variant");
  refused({"--config", config}, "nothing varies");
  refused({"--config", config, "--vary", "comm.algorithm=rign,tree"}, "did you mean \"ring\"?");
  refused({config, config, "--vary", "comm.algorithm=ring,tree"}, "--vary needs one experiment");
  refused({config, config, "--change", "comm.algorithm=tree"}, "--change needs one experiment");
  refused({"--config", config, "--change", "comm.algorithm=rign"}, "did you mean \"ring\"?");
  refused({config, "--change", "comm.algorithm=tree", "--vary", "comm.algorithm=ring,tree"}, "--change");
  refused({"--config", config, "--vary", "comm.algoritm=ring,tree"}, "did you mean \"algorithm\"?");
  refused({"--config", config, "--vary", "data.batch_size=32,64"}, "global batch: 32 in batch_size=32, 64 in");
  refused({"--config", config, "--vary", "comm.algorithm=ring,tree", "--gate", "rng/tree <= 1"},
          "expected VARIANT/VARIANT");
  refused({"--config", config, "--vary", "comm.algorithm=ring,tree", "--precision", "2x"},
          "--precision 2x: expected a fraction");
  refused({"--config", config, "--vary", "comm.algorithm=ring,tree", "--repeat", "2"}, "did you mean \"--repeats\"?");
}

TEST_CASE("a run that fails ends the comparison with its code and its log") {
  Workplace place;
  const auto result =
      place.ddprun(comparing(place, {"--config", place.config(kRing), "--vary", "optimizer.lr=0.01,1e30", "--repeats",
                                     "1", "--parity-steps", "0"}));
  CHECK(result.code == 1);
  const std::string last = last_line(result.err);
  CHECK_MESSAGE(contains(last, "round 1 of 1: lr=1e30: "), last);
  const std::size_t at = last.find("its log: ");
  REQUIRE(at != std::string::npos);
  CHECK(fs::exists(last.substr(at + 9)));
}

TEST_CASE("SIGTERM ends the current run, and nothing is left") {
  Workplace place;
  const std::string config = place.config(kRing);
  std::vector<std::string> argv = {program()};
  const auto arguments = comparing(place, {"--config", config, "--vary", "comm.algorithm=ring,tree", "--set",
                                           "train.epochs=100000", "--parity-steps", "0"});
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  Job job(place, argv);
  const auto has_steps = [&] {
    if (!fs::exists(place.runs())) return false;
    for (const auto& entry : fs::recursive_directory_iterator(place.runs())) {
      if (entry.path().filename() == "epochs.jsonl" && entry.file_size() > 0) return true;
    }
    return false;
  };
  REQUIRE_MESSAGE(eventually(has_steps, 60s), job.launcher().err());
  const auto below = job.descendants();
  CHECK(below.size() >= 3);
  job.launcher().send(SIGTERM);
  const auto result = job.launcher().wait(30s);
  CHECK(result.code == 143);
  CHECK_MESSAGE(contains(result.err, "terminated in round 1 of 5: ring; the runs so far are in "), result.err);
  for (const pid_t pid : below) CHECK(eventually([&] { return !is_alive(pid); }));
  CHECK(place.leftovers().empty());
}

TEST_CASE("a killed comparison leaves no run behind") {
  Workplace place;
  std::vector<std::string> argv = {program()};
  const auto arguments = comparing(place, {"--config", place.config(kRing), "--vary", "comm.algorithm=ring,tree",
                                           "--set", "train.epochs=100000", "--parity-steps", "0"});
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  Job job(place, argv);
  REQUIRE(eventually([&] { return job.descendants().size() >= 4; }, 60s));
  const auto below = job.descendants();
  job.launcher().send(SIGKILL);
  job.launcher().wait(30s);
  for (const pid_t pid : below) CHECK(eventually([&] { return !is_alive(pid); }));
}

TEST_CASE(
    "without the files of share/ddprun there is no page, one line reports it first, and all figures are printed") {
  Workplace place;
  // An installation without share/ddprun.
  const fs::path bare = place.folder() / "bare/bin/ddprun";
  fs::create_directories(bare.parent_path());
  for (const char* name : {"ddprun", "ddprun-compare"}) {
    fs::copy_file(fs::path(program()).parent_path() / name, bare.parent_path() / name);
  }
  const fs::path prefix = fs::path(program()).parent_path().parent_path();
  fs::create_directory_symlink(prefix / "lib", place.folder() / "bare/lib");
  fs::create_directory(place.folder() / "bare/libexec");
  fs::copy_file(prefix / "libexec/ddprun-engine", place.folder() / "bare/libexec/ddprun-engine");
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), bare.string());
    arguments.insert(arguments.end(), {"--output", place.runs().string()});
    const auto result = place.run(arguments);
    CHECK_MESSAGE(result.code == 0, result.err);
    const std::string first = lines_of(result.err).front();
    CHECK_MESSAGE(contains(first, "warning: report.html will not be written: cannot read "), first);
    CHECK_MESSAGE(contains(first, "; ./ddprun in a clone of ddprun installs"), first);
    const fs::path folder = place.new_run();
    CHECK_FALSE(fs::exists(folder / "report.html"));
    return std::pair(result.out, folder);
  };
  const std::string config = place.config(kRing);
  const auto [compared, comparison] = run(
      {"compare", "--config", config, "--vary", "comm.algorithm=ring,tree", "--repeats", "1", "--parity-steps", "0"});
  CHECK(contains(compared, "Where a step's time goes"));
  CHECK(comparison_of(comparison).at("variants").size() == 2);
  const auto page = place.ddprun({"report", comparison.string()});
  CHECK(page.code == 2);
  CHECK_MESSAGE(contains(page.err, comparison.string() + ": has no report.html"), page.err);
}
