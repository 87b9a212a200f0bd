#include <doctest/doctest.h>

#include "ddprun/plugin/tuning.hpp"
#include "support/paths.hpp"
#include "tools/bench/bench.hpp"

namespace ddprun::bench {
namespace {

// A row with this median time.
Row measured(const Variant& variant, std::size_t bytes, double seconds, bool in_place = true) {
  Row row{&variant, {.bytes = bytes, .in_place = in_place}, {}};
  row.rounds.push_back({{seconds, seconds, seconds}, 1, 0, {"served", "here"}});
  return row;
}

class Measured {
 public:
  Measured() {
    const auto plugin = plugin::Registry({testing::build_dir() + "/tests/fakes"}).comm("good");
    for (const int ranks : {2, 4}) {
      for (const char* algorithm : {"ring", "tree"}) plan.variants.push_back({"good", plugin, algorithm, ranks, {}});
    }
    plan.sizes = {16, 64, 256};
  }
  void add(int ranks, std::size_t bytes, double ring, double tree, bool in_place = true) {
    const std::size_t first = ranks == 2 ? 0 : 2;
    rows.push_back(measured(plan.variants[first], bytes, ring, in_place));
    rows.push_back(measured(plan.variants[first + 1], bytes, tree, in_place));
  }
  Tuning table() const { return Tuning::parse(tuning_of(plan, rows, {}), "good"); }

  Plan plan;
  std::vector<Row> rows;
};

TEST_CASE("the table has the fastest in-place algorithm, and limits between measured sizes") {
  Measured measured;
  for (const std::size_t bytes : {16, 64}) measured.add(2, bytes, 2, 1);
  measured.add(2, 256, 1, 2);
  for (const std::size_t bytes : {16, 64, 256}) {
    measured.add(4, bytes, 1, 2);
    measured.add(4, bytes, 2, 1, false);  // out of place does not count
  }
  const Tuning table = measured.table();
  CHECK(table.rows().size() == 3);
  CHECK(table.algorithm(2, 64) == "tree");
  CHECK(table.algorithm(2, 128) == "tree");
  CHECK(table.algorithm(2, 129) == "ring");
  CHECK(table.algorithm(4, 16) == "ring");
}

TEST_CASE("a difference within 3 % does not change the algorithm") {
  Measured measured;
  measured.add(2, 16, 1, 2);
  measured.add(2, 64, 1, 0.98);
  measured.add(2, 256, 1, 0.96);
  const Tuning table = measured.table();
  CHECK(table.algorithm(2, 64) == "ring");
  CHECK(table.algorithm(2, 256) == "tree");
}

}  // namespace
}  // namespace ddprun::bench
