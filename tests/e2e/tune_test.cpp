// `ddprun tune` as a user runs it: on one host, and as two processes on nodes that 127.0.0.1 joins.
#include <doctest/doctest.h>

#include <csignal>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "e2e/compared.hpp"
#include "e2e/program.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;
using namespace std::chrono_literals;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

// Two processes of one `ddprun tune`, each in a folder of its own.
struct Nodes {
  Nodes(const Workplace& place, const Argv& arguments) : place(place) {
    const int port = free_port();
    for (int node = 0; node < 2; ++node) {
      fs::create_directories(folder(node));
      const Argv as_node = {"--nnodes",      "2",         "--node-rank",   std::to_string(node),
                            "--master-addr", "127.0.0.1", "--master-port", std::to_string(port),
                            "--nproc",       "1"};
      const Argv shell = {"/bin/sh", "-c", "cd " + folder(node).string() + " && exec \"$@\"", "sh"};
      jobs.push_back(std::make_unique<Job>(place, shell + Argv{program(), "tune"} + arguments + as_node));
    }
  }

  fs::path folder(int node) const { return place.folder() / ("node" + std::to_string(node)); }

  std::vector<ProcessResult> wait() {
    std::vector<ProcessResult> results;
    for (auto& job : jobs) results.push_back(job->launcher().wait(240s));
    return results;
  }

  const Workplace& place;
  std::vector<std::unique_ptr<Job>> jobs;
};

bool has_steps(const fs::path& folder) {
  if (!fs::exists(folder)) return false;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename() == "steps-rank0.jsonl" && entry.file_size() > 0) return true;
  }
  return false;
}

// What all results have in common, whatever is fastest on this machine today. `text`: the output of process 0.
void check_result(const json& object, const std::string& text) {
  CHECK(object.at("ranks") == 2);
  CHECK(object.at("gradients").size() == 2);  // of linear: weight and bias
  std::set<std::string> methods;
  for (const json& link : object.at("links")) methods.insert(link.at("algorithm").get<std::string>());
  CHECK(methods.contains("auto"));
  CHECK(methods.contains("ring"));
  CHECK(methods.contains("tree"));
  CHECK(object.at("config").at("settings").at("comm.algorithm") == "ring");
  CHECK(object.at("chosen").at("step") <= object.at("config").at("step"));
  const bool has_change = object.at("chosen").at("settings") != object.at("config").at("settings");
  CHECK(object.at("measured").is_null() != has_change);
  CHECK(contains(text, "keep the config\n") != object.at("is_better").get<bool>());
  CHECK(contains(text, "expected with the config as it is: "));
}

}  // namespace

TEST_CASE("one host, two backends: links, gradients, and a choice that the comparison confirms or not") {
  Workplace place;
  const std::string config = place.config(kRing), file = (place.folder() / "tune.json").string();
  const auto result = place.ddprun({"tune", config, "--output", place.runs().string(), "--rounds", "2", "--compression",
                                    "none,bf16", "--backend", "shm", "--json", file});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  const json object = json::parse(read_file(file));
  check_result(object, result.out);
  std::set<std::string> tried;
  for (const json& one : object.at("per_byte")) {
    tried.insert(one.at("backend").get<std::string>() + " " + one.at("compression").get<std::string>());
  }
  CHECK(tried == std::set<std::string>{"gloo bf16", "gloo none", "shm bf16", "shm none"});
  CHECK(contains(result.out, "linear, linear: 2 ranks on 1 host\n"));
  CHECK(contains(result.err, "so each of the next runs has "));
  CHECK(contains(result.err, "tune: a benchmark of gloo with bfloat16\n"));
  CHECK(fs::exists(place.new_run() / "logs" / "gradients.log"));
  CHECK(place.leftovers().empty());
}

TEST_CASE("two nodes without a common disk: node 0 decides and prints") {
  const Workplace place;
  Nodes nodes(place, {place.config(kRing), "--set", "comm.options.interface=lo", "--steps", "24", "--rounds", "2",
                      "--compression", "none", "--json", "tune.json"});
  const auto results = nodes.wait();
  for (const auto& result : results) REQUIRE_MESSAGE(result.code == 0, result.err);
  const json object = json::parse(read_file(nodes.folder(0) / "tune.json"));
  CHECK(object.at("hosts") == 2);
  check_result(object, results[0].out);
  const fs::path folder = fs::directory_iterator(nodes.folder(0) / "runs")->path();
  const json bench = json::parse(read_file(folder / "bench-gloo-none.json"));
  CHECK(contains(bench.at("command").dump(), "interface=lo"));
  CHECK(results[1].out + results[1].err == "");
  CHECK_FALSE(fs::exists(nodes.folder(1) / "tune.json"));
  CHECK(place.leftovers().empty());
}

TEST_CASE("a child that fails ends tune on all nodes with its code and its log") {
  const Workplace place;
  Nodes nodes(place, {place.config(kRing), "--set", "optimizer.lr=1e30"});
  const auto results = nodes.wait();
  for (const auto& result : results) {
    CHECK(result.code != 0);
    CHECK(result.code == results[0].code);
    CHECK_MESSAGE(contains(last_line(result.err), "gradients: "), result.err);
    CHECK_MESSAGE(contains(last_line(result.err), "its log: "), result.err);
  }
  CHECK(place.leftovers().empty());
}

TEST_CASE("nodes with other configs are refused") {
  const Workplace place;
  const std::string config = place.config(kRing);
  std::vector<std::unique_ptr<Job>> jobs;
  const int port = free_port();
  for (int node = 0; node < 2; ++node) {
    jobs.push_back(std::make_unique<Job>(
        place, Argv{program(), "tune", config, "--set", "experiment.seed=" + std::to_string(node), "--nnodes", "2",
                    "--node-rank", std::to_string(node), "--master-addr", "127.0.0.1", "--master-port",
                    std::to_string(port), "--output", place.runs().string()}));
  }
  for (const auto& job : jobs) {
    const auto result = job->launcher().wait();
    CHECK(result.code == 4);
    CHECK_MESSAGE(contains(last_line(result.err), "node 0 and node 1 do not tune the same experiment: "), result.err);
  }
  CHECK_FALSE(fs::exists(place.runs()));
}

TEST_CASE("only the named algorithms are tried, and the config's own; unknown ones are refused") {
  const Workplace place;
  const std::string config = place.config(kRing), file = (place.folder() / "tune.json").string();
  const auto tune = [&](const Argv& more) {
    return place.ddprun(Argv{"tune", config, "--output", place.runs().string(), "--steps", "24", "--rounds", "2",
                             "--compression", "none", "--quiet"} +
                        more);
  };
  const auto refused = tune({"--algorithm", "rign"});
  CHECK(refused.code == 2);
  CHECK_MESSAGE(contains(refused.err, "--algorithm rign: expected \"auto\", \"ring\""), refused.err);
  CHECK(contains(refused.err, "(did you mean \"ring\"?)"));
  CHECK_FALSE(fs::exists(place.runs()));
  const auto result = tune({"--algorithm", "tree", "--backend", "shm", "--json", file});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK_MESSAGE(contains(result.err,
                         "tune: shm has none of the algorithms of --algorithm, so it is not tried with compression "
                         "\"none\"\n"),
                result.err);
  const json object = json::parse(read_file(file));
  REQUIRE(object.at("links").size() == 2);
  CHECK(object.at("links")[0].at("algorithm") == "ring");
  CHECK(object.at("links")[1].at("algorithm") == "tree");
}

TEST_CASE("a killed process ends tune on the other node, and leaves nothing") {
  for (const std::size_t victim : {0, 1}) {
    CAPTURE(victim);
    const Workplace place;
    Nodes nodes(place, {place.config(kRing), "--steps", "1000000"});
    REQUIRE(eventually([&] { return has_steps(nodes.folder(0)); }));
    std::vector<pid_t> below;
    for (const auto& job : nodes.jobs) {
      for (const pid_t pid : job->descendants()) below.push_back(pid);
    }
    nodes.jobs[victim]->launcher().send(SIGKILL);
    const auto survivor = nodes.wait()[1 - victim];
    CHECK(survivor.code == 5);
    CHECK_MESSAGE(contains(last_line(survivor.err), "ddprun: failed: "), survivor.err);
    for (const pid_t pid : below) CHECK(eventually([&] { return !is_alive(pid); }));
  }
}
