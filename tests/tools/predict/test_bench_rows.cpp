#include "tools/predict/links.hpp"

#include <doctest/doctest.h>

#include "support/error_of.hpp"
#include "support/text.hpp"
#include "tools/predict/inputs.hpp"

using namespace ddprun;
using namespace ddprun::testing;
using predict::read_bench;

TEST_CASE("the rows are those that a training run would make") {
  const InTempDir folder;
  json out_of_place = bench_row("gloo", "ring", 2, 4096, 1e-3), broadcast = out_of_place,
       own = bench_row("ucx", "ring", 2, 4096, 3e-3), of_one = bench_row("gloo", "ring", 1, 4096, 1e-3);
  out_of_place["in_place"] = false;
  broadcast["collective"] = "broadcast";
  own["buffer"] = "plugin";
  const auto gloo = bench_row("gloo", "ring", 2, 4096, 2e-3), not_own = bench_row("ucx", "ring", 2, 4096, 4e-3);
  folder.write("two.json", bench_file(2, {out_of_place, broadcast, gloo, own, not_own, of_one}).dump());
  folder.write("one.json", bench_file(1, {bench_row("gloo", "ring", 4, 65536, 1e-4)}).dump());
  const auto rows = read_bench({"two.json", "one.json"});
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].backend == "gloo");
  CHECK(rows[0].seconds == 2e-3);
  CHECK(rows[0].shape.hosts == 2);
  CHECK(rows[0].shape.per_host == 1);
  CHECK(rows[1].seconds == 3e-3);  // in the backend's own memory
  CHECK(rows[2].shape.hosts == 1);
  CHECK(rows[2].shape.per_host == 4);
  CHECK(rows[2].bytes == 65536);
}

TEST_CASE("a file that is no such benchmark is refused with its path") {
  const InTempDir folder;
  const auto error = [](const std::string& path) { return error_of([&] { read_bench({path}); }); };
  CHECK(contains(error("nowhere.json"), "2: nowhere.json: No such file or directory"));
  const std::string other = "2: other.json: not a file of `ddprun bench --json`";
  for (const std::string text :
       {"", "[]", "{\"ddprun_sweep\": 1}", "{\"ddprun_bench\": 1, \"hosts\": [], \"rows\": [7]}"}) {
    folder.write("other.json", text);
    CHECK(error("other.json") == other);
  }
  json file = bench_file(2, {bench_row("gloo", "ring", 2, 4096, 1e-3)});
  file["hosts"][1]["ranks"] = {1, 2};
  folder.write("four.json", file.dump());
  CHECK(contains(error("four.json"), "2: four.json: host node1 has several ranks; measure"));
  folder.write("empty.json", bench_file(2, {}).dump());
  CHECK(error("empty.json") == "2: empty.json: has no allreduce in place between two or more ranks");
  json timeless = bench_row("gloo", "ring", 2, 4096, 1e-3);
  timeless["median"] = 0;
  folder.write("timeless.json", bench_file(2, {timeless}).dump());
  CHECK(contains(error("timeless.json"), "2: timeless.json: an allreduce of 4096"));
}

TEST_CASE("links are fitted for each algorithm, between hosts and within a host of as many ranks") {
  const InTempDir folder;
  const predict::Link link = {5e-5, 1e-9};
  auto two = rows_between("gloo", "ring", 2, link), tree = rows_between("gloo", "tree", 2, {1e-5, 2e-9});
  two.insert(two.end(), tree.begin(), tree.end());
  folder.write("two.json", bench_file(2, two).dump());
  // A tree's calls overlap between three hosts, so these rows do not count.
  folder.write("three.json", bench_file(3, rows_between("gloo", "tree", 3, {1, 1})).dump());
  std::vector<json> host;
  for (const double bytes : kSizes) {
    host.push_back(bench_row("shm", "direct", 4, bytes, 1e-6 + bytes * 1e-10));
    host.push_back(bench_row("shm", "direct", 2, bytes, 1));
  }
  folder.write("host.json", bench_file(1, host).dump());
  const auto links = predict::fit_links(read_bench({"two.json", "three.json", "host.json"}), 4);
  REQUIRE(links.size() == 3);
  CHECK(links[0].text() == "gloo ring between hosts");
  CHECK(links[0].link.alpha == doctest::Approx(link.alpha));
  CHECK(links[1].text() == "gloo tree between hosts");
  CHECK(links[1].link.beta == doctest::Approx(2e-9));
  CHECK(links[1].rows.size() == kSizes.size());
  CHECK(links[2].text() == "shm within a host");
  CHECK(links[2].link.beta == doctest::Approx(1e-10));
  const auto found = predict::links_of(links, "gloo");
  CHECK(found.between.size() == 2);
  CHECK(found.within.size() == 1);  // of hierarchical
}

TEST_CASE("measurements that determine no link are refused") {
  const InTempDir folder;
  const auto error = [&](const json& file) {
    folder.write("bench.json", file.dump());
    return error_of([] { predict::fit_links(read_bench({"bench.json"}), 1); });
  };
  CHECK(contains(error(bench_file(2, {bench_row("gloo", "ring", 2, 4096, 1e-3)})),
                 "2: gloo ring between hosts: the measured sizes cannot separate latency from bandwidth; measure"));
  CHECK(contains(
      error(bench_file(2, {bench_row("gloo", "ring", 2, 4096, 1e-3), bench_row("gloo", "ring", 2, 65536, 1e-3)})),
      "2: gloo ring between hosts: the time does not grow with the size; measure larger"));
  CHECK(contains(error(bench_file(1, {bench_row("gloo", "ring", 2, 4096, 1e-3)})),
                 "2: no file of --bench has an algorithm between hosts whose cost is known"));
  CHECK(contains(error(bench_file(2, rows_between("gloo", "ring", 2, {1e-5, 1e-9}))), "no error"));
}
