// `ddprun compare` as several processes: one on each node, or one for each rank of another launcher. Each node has a
// folder of its own here, and 127.0.0.1 joins them.
#include <doctest/doctest.h>

#include <csignal>
#include <functional>
#include <iostream>
#include <memory>

#include "e2e/compared.hpp"
#include "e2e/program.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;
using namespace std::chrono_literals;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

// Two processes of one comparison, each in a folder of its own.
struct Two {
  Two(const Workplace& place, const std::function<Argv(int)>& command) : place(place) {
    for (int i = 0; i < 2; ++i) {
      fs::create_directories(folder(i));
      const Argv shell = {"/bin/sh", "-c", "cd " + folder(i).string() + " && exec \"$@\"", "sh"};
      jobs.push_back(std::make_unique<Job>(place, shell + command(i)));
    }
  }

  fs::path folder(int i) const { return place.folder() / ("host" + std::to_string(i)); }
  // The one comparison of a process.
  fs::path comparison(int i) const { return fs::directory_iterator(folder(i) / "runs")->path(); }

  std::vector<ProcessResult> wait() {
    std::vector<ProcessResult> results;
    for (auto& job : jobs) results.push_back(job->launcher().wait(60s));
    return results;
  }

  // Both have ended with this code and line, and nothing is left.
  void check_end(int code, const std::string& line) {
    for (const auto& result : wait()) {
      CHECK(result.code == code);
      CHECK_MESSAGE(contains(last_line(result.err), line), result.err);
    }
    CHECK(place.leftovers().empty());
  }

  const Workplace& place;
  std::vector<std::unique_ptr<Job>> jobs;
};

Argv compare(const Argv& more, const std::string& repeats = "1") {
  return Argv{program(), "compare", "--warmup-steps", "2", "--repeats", repeats} + more;
}

Argv as_node(int node, int port) {
  return {"--nnodes",         "2",         "--node-rank",   std::to_string(node),
          "--master-addr",    "127.0.0.1", "--master-port", std::to_string(port),
          "--nproc-per-node", "1"};
}

Argv as_rank(int rank, int port) {
  return {"env", "RANK=" + std::to_string(rank), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1",
          "MASTER_PORT=" + std::to_string(port)};
}

bool has_steps(const fs::path& folder) {
  if (!fs::exists(folder)) return false;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename() == "epochs.jsonl" && entry.file_size() > 0) return true;
  }
  return false;
}

TEST_CASE("two nodes without a common disk compare two configs, with parity") {
  const Workplace place;
  const std::string ring = place.config(kRing, "ring");
  const std::string tree = place.config(kRing + "[optimizer]\nmomentum = 0.5\n", "other");
  const int port = free_port();
  Two two(place, [&](int node) { return compare({ring, tree, "--parity-steps", "1"}) + as_node(node, port); });
  const auto results = two.wait();
  for (const auto& result : results) REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(results[0].out, "Where a step's time goes"));
  CHECK(results[1].out + results[1].err == "");
  const json object = json::parse(read_file(two.comparison(0) / "compare.json"));
  for (const json& variant : object.at("variants")) {
    CHECK(variant.at("median").at("samples") == 18 * 32);
    CHECK(variant.at("parity").at("ranks") == 2);
    CHECK(variant.at("parity").at("ranks_part").is_null());
    CHECK(variant.at("parity").at("runs_equal") == true);
  }
  CHECK_FALSE(fs::exists(two.comparison(1) / "compare.json"));
  CHECK(fs::exists(two.comparison(1) / "logs" / "001-ring.node1.log"));
  CHECK(place.leftovers().empty());
}

TEST_CASE("two ranks of env:// compare ddp with a single process") {
  const Workplace place;
  const std::string config = place.config(kRing);
  const int port = free_port();
  Two two(place, [&](int rank) {
    return as_rank(rank, port) +
           compare({"--config", config, "--vary", "strategy.kind=single,ddp", "--parity-steps", "0"});
  });
  const auto results = two.wait();
  for (const auto& result : results) REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(results[0].out, "ddp (2 workers)"));
  CHECK(results[1].out + results[1].err == "");
  CHECK(place.leftovers().empty());
}

TEST_CASE("ranks of torchrun, whose agent has a store of its own") {
  if (!fs::exists(TORCHRUN)) {
    std::cout << "skipped: there is no torchrun at " TORCHRUN "\n";
    return;
  }
  const Workplace place;
  const Argv what = compare({"--config", place.config(kRing), "--vary", "comm.algorithm=ring,tree", "--parity-steps",
                             "0", "--output", place.runs().string()});
  const auto result = place.run(Argv{TORCHRUN, "--standalone", "--nproc-per-node=2", "--no-python"} + what);
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(result.out, "Where a step's time goes"));
}

TEST_CASE("a run that fails ends the comparison on all hosts, with the first cause") {
  const Workplace place;
  const std::string config = place.config(kRing);
  const Argv what = compare({"--config", config, "--vary", "optimizer.lr=0.01,1e30", "--parity-steps", "0"});
  for (const bool nodes : {true, false}) {
    const int port = free_port();
    Two two(place, [&](int i) { return nodes ? what + as_node(i, port) : as_rank(i, port) + what; });
    two.check_end(1, "ddprun: failed: round 1 of 1: lr=1e30: ");
    for (int i = 0; i < 2; ++i) fs::remove_all(two.folder(i));
  }
}

// Kills each of the two processes once.
void check_kills(bool nodes) {
  const Workplace place;
  const std::string config = place.config(kRing);
  const Argv what = compare({"--config", config, "--vary", "comm.algorithm=ring,tree", "--parity-steps", "0", "--set",
                             "train.epochs=100000"});
  for (const std::size_t victim : {0, 1}) {
    const int port = free_port();
    Two two(place, [&](int i) { return nodes ? what + as_node(i, port) : as_rank(i, port) + what; });
    REQUIRE(eventually([&] { return has_steps(two.folder(0)); }, 60s));
    std::vector<pid_t> below;
    for (const auto& job : two.jobs) {
      for (const pid_t pid : job->descendants()) below.push_back(pid);
    }
    two.jobs[victim]->launcher().send(SIGKILL);
    const auto survivor = two.wait()[1 - victim];
    CHECK(survivor.code == 5);
    CHECK_MESSAGE(contains(last_line(survivor.err), "ddprun: failed: "), survivor.err);
    for (const pid_t pid : below) CHECK(eventually([&] { return !is_alive(pid); }));
    for (int i = 0; i < 2; ++i) fs::remove_all(two.folder(i));
  }
}

TEST_CASE("a killed process ends the comparison on all nodes") {
  constexpr bool kNodes = true;
  check_kills(kNodes);
}

TEST_CASE("a killed process ends the comparison of another launcher's ranks") {
  constexpr bool kNodes = false;
  check_kills(kNodes);
}

TEST_CASE("SIGTERM to one process ends the comparison on all hosts") {
  const Workplace place;
  const std::string config = place.config(kRing);
  const Argv what = compare({"--config", config, "--vary", "comm.algorithm=ring,tree", "--parity-steps", "0", "--set",
                             "train.epochs=100000"});
  const int port = free_port();
  Two two(place, [&](int i) { return what + as_node(i, port); });
  REQUIRE(eventually([&] { return has_steps(two.folder(0)); }, 60s));
  two.jobs[1]->launcher().send(SIGTERM);
  two.check_end(143, "ddprun: terminated in round 1 of 1: ring; the runs so far are in ");
}

TEST_CASE("what does not fit together is refused in one line") {
  const Workplace place;
  const std::string config = place.config(kRing);
  const Argv what = {"--config", config, "--vary", "comm.algorithm=ring,tree"};
  const int port = free_port();
  Two two(place, [&](int i) { return compare(what, std::to_string(i + 1)) + as_node(i, port); });
  two.check_end(
      4, "node 0 and node 1 do not make the same comparison: \"--repeats = 1\" and \"--repeats = 2\"; start all");
  for (int i = 0; i < 2; ++i) CHECK(fs::is_empty(two.folder(i)));

  const auto refused = [&](const Argv& argv) {
    const auto result = place.run(argv);
    CHECK(lines_of(result.err).size() == 1);
    return std::to_string(result.code) + ": " + result.err;
  };
  CHECK(contains(refused(compare({"--runs", "a", "--runs", "b"}) + as_node(0, port)),
                 "2: compare: earlier runs are compared by one process: leave out --nnodes"));
  CHECK(contains(refused(compare(what) + Argv{"--nnodes", "2"}), "2: --node-rank is missing"));
}

}  // namespace
