// `ddprun bench` as one job: on hosts out of namespaces, and with several launchers on this host.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "ddprun/plugin/tuning.hpp"
#include "launch/free_port.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"
#include "testing/hosts.hpp"
#include "testing/ranks.hpp"
#include "tools/bench/command.hpp"

namespace ddprun::bench {
namespace {

using namespace testing;
using nlohmann::json;
using Words = std::vector<std::string>;

const std::string kSecret = "DDPRUN_SECRET=00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

struct Started {
  Words arguments;
  Words variables;
};

// Starts `count` benches at once, each placed as a rank. Returns how they ended.
std::vector<ProcessResult> start(int count, const std::function<Started(int)>& what, const Placement& placement = {}) {
  const Place place;
  const auto body = [&](Rank& rank) {
    const Started one = what(rank.rank());
    const auto result = place.run(one.arguments, one.variables);
    rank.report(json({result.code, result.out, result.err}).dump());
  };
  const auto outcomes = run_ranks(count, As::processes, std::chrono::seconds(100), body, placement);
  CHECK(failures(outcomes) == "");
  std::vector<ProcessResult> results;
  for (const Outcome& outcome : outcomes) {
    REQUIRE(outcome.records.size() == 1);
    const json record = json::parse(outcome.records[0]);
    results.push_back({record[0], record[1], record[2], {}});
  }
  CHECK(place.is_clean());
  return results;
}

// As ranks of PyTorch's env://.
Words as_rank(int rank, int size, const std::string& master) {
  return {kSecret, "RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(size), "MASTER_ADDR=" + master,
          "MASTER_PORT=29500"};
}

Words nodes_of(int node, int nodes, const std::string& master) {
  return {"--nnodes", std::to_string(nodes), "--node-rank", std::to_string(node), "--master-addr", master};
}

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// All cases of all backends are there, and right.
void check_table(const std::string& out, const std::string& ranks) {
  CHECK_MESSAGE(contains(out, "# allreduce, " + ranks + " ranks"), out);
  const auto rows = rows_of(out);
  for (const std::string backend : {"gloo", "ucx"}) {
    if (!contains(DDPRUN_BENCH_BACKENDS, backend)) continue;
    const auto of_backend = [&](const auto& row) { return row[4] == backend; };
    CHECK(std::count_if(rows.begin(), rows.end(), of_backend) >= 3 * 2);
  }
  for (const auto& row : rows) {
    REQUIRE(row.size() == 15);
    CHECK(std::stod(row[9]) > 0);
    CHECK(row[14] == "0");
  }
}

TEST_CASE("on two hosts, as ranks of another launcher: rank 0 prints, and the header says who is where") {
  if (!Hosts::are_possible()) return;
  const Hosts hosts(2);
  const TempDir folder;
  const std::string file = folder.path() / "json";
  const auto results = start(
      4,
      [&](int rank) -> Started {
        return {quick({"--backend", DDPRUN_BENCH_BACKENDS, "--json", file}), as_rank(rank, 4, hosts.address(0))};
      },
      hosts.placement(2));
  for (const auto& result : results) REQUIRE_MESSAGE(result.code == 0, result.err);
  check_table(results[0].out, "4");
  CHECK(contains(results[0].out, "# 2 hosts: "));
  CHECK(contains(results[0].out, " has ranks 0 and 1; "));
  CHECK(contains(results[0].out, " has ranks 2 and 3\n"));
  for (std::size_t rank = 1; rank < 4; ++rank) CHECK(results[rank].out + results[rank].err == "");
  const json document = json::parse(read_file(file));
  REQUIRE(document.at("hosts").size() == 2);
  CHECK(document["hosts"][1].at("ranks") == json({2, 3}));
}

TEST_CASE("on two hosts with --nnodes; hosts may have different numbers of ranks") {
  if (!Hosts::are_possible()) return;
  const Hosts hosts(2);
  const auto results = start(
      2,
      [&](int node) -> Started {
        const Words ranks = {"--backend", DDPRUN_BENCH_BACKENDS, "--nproc-per-node", node == 0 ? "2" : "1"};
        return {quick(joined(nodes_of(node, 2, hosts.address(0)), ranks)), {kSecret}};
      },
      hosts.placement(1));
  for (const auto& result : results) REQUIRE_MESSAGE(result.code == 0, result.err);
  check_table(results[0].out, "3");
  CHECK(contains(results[0].out, " has ranks 0 and 1; "));
  CHECK(contains(results[0].out, " has rank 2\n"));
  CHECK(results[1].out == "");
}

std::vector<std::string> backends() {
  std::vector<std::string> names;
  for (const std::string name : {"gloo", "ucx"}) {
    if (contains(DDPRUN_BENCH_BACKENDS, name)) names.push_back(name);
  }
  return names;
}

// What served rank 0's calls, by size in bytes.
std::map<std::size_t, std::string> served(const ProcessResult& result) {
  std::map<std::size_t, std::string> algorithms;
  for (const auto& row : rows_of(result.out)) algorithms[std::stoull(row[0])] = row[6].substr(0, row[6].find('/'));
  return algorithms;
}

TEST_CASE("on two hosts of two ranks, --tune writes a table for them, and auto takes from it") {
  if (!Hosts::are_possible()) return;
  const Hosts hosts(2);
  const TempDir folder;
  const std::string written = folder.path() / "written";
  const auto table = [&](const std::string& name) { return (folder.path() / name).string(); };
  for (const std::string& backend : backends()) {
    CAPTURE(backend);
    const auto run = [&](const std::function<Words(int)>& more) {
      const Words ranks = {"--backend", backend, "--nproc-per-node", "2"};
      return start(
          2,
          [&](int node) -> Started {
            return {quick(joined(nodes_of(node, 2, hosts.address(0)), joined(ranks, more(node)))), {kSecret}};
          },
          hosts.placement(1));
    };
    const auto tuned = run([&](int) -> Words { return {"--tune", written}; });
    REQUIRE_MESSAGE(tuned[0].code == 0, tuned[0].err);
    CHECK(contains(read_file(written), ", on 2 hosts: "));
    CHECK(contains(read_file(written), " has ranks 0 and 1; "));
    const Tuning tuning = Tuning::parse(read_file(written), backend);
    const auto by_table = served(run([&](int) -> Words { return {"--option", "tuning=" + written}; })[0]);
    REQUIRE(by_table.size() == 3);
    for (const auto& [bytes, algorithm] : by_table) CHECK(algorithm == tuning.algorithm(4, bytes));

    for (const std::string algorithm : {"ring", "tree", "hierarchical"}) {
      std::ofstream(table(algorithm)) << "ddprun-tuning 1\n" << backend << " max max " << algorithm << "\n";
      const auto chosen = served(run([&](int) -> Words { return {"--option", "tuning=" + table(algorithm)}; })[0]);
      CHECK(chosen.size() == 3);
      for (const auto& [bytes, one] : chosen) CHECK(one == algorithm);
    }

    const auto different = run([&](int node) -> Words {
      return {"--option", "tuning=" + table(node == 0 ? "ring" : "tree")};
    });
    for (const auto& result : different) CHECK(result.code == 3);
    CHECK_MESSAGE(contains(different[0].err, "differs between the ranks"), different[0].err);

    const auto one_sided = run([&](int node) -> Words {
      return node == 0 ? Words{"--option", "tuning=" + table("ring")} : Words{};
    });
    for (const auto& result : one_sided) CHECK(result.code == 4);
  }
}

// Two launchers on this host; each gets the arguments that `more` returns for its node.
std::vector<ProcessResult> start_two(const std::function<Words(int)>& more) {
  const launch::testing::FreePort held(true);
  const Words port = {"--master-port", std::to_string(held.number)};
  return start(2, [&](int node) -> Started {
    return {quick(joined(joined(nodes_of(node, 2, "127.0.0.1"), port), more(node))), {}};
  });
}

TEST_CASE("a gate that is not passed is exit code 6 on all hosts") {
  const auto results = start_two([](int) -> Words { return {"--min-busbw", "1000000"}; });
  for (const auto& result : results) CHECK_MESSAGE(result.code == 6, result.err);
  CHECK(contains(results[0].err, "GB/s is below 1000000.000"));
  CHECK(contains(results[1].err, "bench: rank 0 has printed what is wrong"));
}

TEST_CASE("hosts that would measure different things are refused") {
  const auto results = start_two([](int node) -> Words { return {"-o", node == 0 ? "sum" : "max"}; });
  for (const auto& result : results) {
    CHECK(result.code == 4);
    CHECK(contains(result.err, "bench: rank 1 on "));
    CHECK(contains(result.err, "-o max"));
    CHECK(contains(result.err, "give the same arguments and the same version on all hosts"));
    CHECK(rows_of(result.out).empty());
  }
}

TEST_CASE("hosts with different options of a backend are refused; each has an interface of its own") {
  const auto refused = start_two([](int node) -> Words { return {"--option", "chunk=" + std::to_string(node)}; });
  for (const auto& result : refused) {
    CHECK(result.code == 4);
    CHECK_MESSAGE(contains(result.err, " --option chunk=1\", and rank 0 \""), result.err);
  }
  const auto results = start_two([](int node) -> Words {
    return node == 0 ? Words{"--option", "interface=lo"} : Words{};
  });
  for (const auto& result : results) CHECK_MESSAGE(result.code == 0, result.err);
}

TEST_CASE("a backend that fails is named, with the exit code of the backend, on all hosts") {
  const auto results = start_two([](int) -> Words { return {"--option", "nonsense=1"}; });
  for (const auto& result : results) {
    CHECK(result.code == 3);
    CHECK_MESSAGE(contains(result.err, "bench: gloo auto, 2 ranks: "), result.err);
  }
}

TEST_CASE("a wrong result across hosts is counted, and the exit code is 6") {
  const auto results = start_two([](int) -> Words { return {"--backend", "good,off_by_one"}; });
  for (const auto& result : results) CHECK_MESSAGE(result.code == 6, result.err);
  for (const auto& row : rows_of(results[0].out)) CHECK(row[14] == (row[4] == "off_by_one" ? "4" : "0"));
}

TEST_CASE("the launcher's ranks measure: other numbers of ranks are refused, and --standalone starts ranks here") {
  const Place place;
  const Words rank = as_rank(0, 2, "127.0.0.1");
  const auto refused = [&](const Words& arguments, const Words& variables, const std::string& text) {
    const auto result = place.run(quick(arguments), variables);
    CHECK(result.code == 2);
    CHECK_MESSAGE(contains(result.err, text), result.err);
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  };
  refused({"--ranks", "2,4"}, rank, "--ranks: env:// has started 2 ranks, and all of them measure");
  refused(joined(nodes_of(0, 2, "127.0.0.1"), {"--ranks", "2"}), {}, "--ranks is for one host: with --nnodes");
  refused({"--nproc-per-node", "2"}, {}, "--nproc-per-node is for --nnodes; on one host, give --ranks");
  const auto here = place.run(quick({"--standalone", "--ranks", "3"}), rank);
  CHECK_MESSAGE(here.code == 0, here.err);
  CHECK(contains(here.out, "# allreduce, 3 ranks"));
}

}  // namespace
}  // namespace ddprun::bench
