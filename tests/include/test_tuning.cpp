#include <doctest/doctest.h>

#include "ddprun/plugin/tuning.hpp"

namespace ddprun {
namespace {

constexpr const char* kText =
    "ddprun-tuning 1\n"
    "# a comment\n"
    "\n"
    "mine 2 1000 small\n"
    "other 2 max elsewhere\n"
    "mine 2 max large\n"
    "mine 8 max eight\n";

std::string why_refused(const std::string& text) {
  try {
    Tuning::parse(text, "mine");
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

std::string with_rows(const std::string& rows) {
  return "ddprun-tuning 1\n" + rows;
}

TEST_CASE(
    "a vector uses the first limit that is not below it, a group its own rows or those of the next larger group") {
  const Tuning table = Tuning::parse(kText, "mine");
  CHECK(table.rows().size() == 3);
  CHECK(table.algorithm(2, 0) == "small");
  CHECK(table.algorithm(2, 1000) == "small");
  CHECK(table.algorithm(2, 1001) == "large");
  CHECK(table.algorithm(1, 1) == "small");
  CHECK(table.algorithm(3, 1) == "eight");
  CHECK(table.algorithm(8, uint64_t{1} << 62) == "eight");
  CHECK(table.algorithm(9, 1) == "eight");  // above all groups: the largest
}

TEST_CASE("a group uses the algorithms of its own rows only") {
  const Tuning table = Tuning::parse(kText, "mine");
  CHECK(table.uses(2, "small"));
  CHECK(table.uses(2, "large"));
  CHECK_FALSE(table.uses(2, "eight"));
  for (const int ranks : {3, 8, 9}) {
    CAPTURE(ranks);
    CHECK(table.uses(ranks, "eight"));
    CHECK_FALSE(table.uses(ranks, "large"));
  }
}

TEST_CASE("a written table reads back") {
  const std::vector<TuningRow> rows = {{"mine", 2, 8, "a"},
                                       {"mine", 2, TuningRow::kNoLimit, "b"},
                                       {"mine", TuningRow::kAnyRanks, TuningRow::kNoLimit, "a"}};
  const Tuning table = Tuning::parse(to_text(rows, "a test"), "mine");
  REQUIRE(table.rows().size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(table.rows()[i].ranks == rows[i].ranks);
    CHECK(table.rows()[i].bytes == rows[i].bytes);
    CHECK(table.rows()[i].algorithm == rows[i].algorithm);
  }
}

TEST_CASE("an invalid table is refused with the line") {
  CHECK(why_refused("") == "it has no row of \"mine\"");
  CHECK(why_refused("mine 2 max a\n") == "line 1: expected \"ddprun-tuning 1\"");
  CHECK(why_refused("ddprun-tuning 2\n") == "line 1: expected \"ddprun-tuning 1\"");
  CHECK(why_refused(with_rows("other 2 max a\n")) == "it has no row of \"mine\"");
  CHECK(why_refused(with_rows("mine 2 max\n")) == "line 2: expected BACKEND RANKS BYTES ALGORITHM");
  CHECK(why_refused(with_rows("mine 2 max a b\n")) == "line 2: expected BACKEND RANKS BYTES ALGORITHM");
  CHECK(why_refused(with_rows("mine two max a\n")) == "line 2: \"two\": expected a number from 1, or max");
  CHECK(why_refused(with_rows("mine 2 -1 a\n")) == "line 2: \"-1\": expected a number from 1, or max");
  CHECK(why_refused(with_rows("mine 2 10 a\n")) == "line 2: the last row needs bytes max");
  CHECK(why_refused(with_rows("mine 2 10 a\nmine 2 10 b\n")) == "line 3: ranks and bytes must ascend");
  CHECK(why_refused(with_rows("mine 2 max a\nmine 1 max b\n")) == "line 3: ranks and bytes must ascend");
  CHECK(why_refused(with_rows("mine 2 10 a\nmine 3 max b\n")) ==
        "line 3: the ranks before need a last row with bytes max");
}

}  // namespace
}  // namespace ddprun
