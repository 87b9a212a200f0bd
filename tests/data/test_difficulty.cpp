#include <doctest/doctest.h>

#include "data/curriculum.hpp"
#include "data/memory_dataset.hpp"
#include "support/error_of.hpp"
#include "support/text.hpp"
#include "testing/temp_dir.hpp"

using namespace ddprun;
using namespace ddprun::data;
using namespace ddprun::testing;

namespace {

const MemoryDataset<float, float> kThree({2}, {1, -3, 0, 0, 5, 6}, {1}, {0, 0, 0});

}  // namespace

TEST_CASE("magnitude is the mean absolute value of an input") {
  CHECK(difficulties("magnitude", kThree, 0) == std::vector<double>{2, 0, 5.5});
  CHECK(difficulties("magnitude", kThree, 2) == std::vector<double>{2, 0, 5.5});
}

TEST_CASE("a file has one number per line") {
  const TempDir dir;
  CHECK(difficulties(dir.write("scores.txt", "1\n-2.5e3\r\n 7 \n"), kThree, 0) == std::vector<double>{1, -2500, 7});
}

TEST_CASE("an invalid list of scores is reported with the line") {
  const TempDir dir;
  const auto error_with = [&](const std::string& text) {
    return error_of([&] { difficulties(dir.write("scores.txt", text), kThree, 0); });
  };
  CHECK(contains(error_with("1\n2\n"), "scores.txt: has 2 lines, and there are 3 training samples"));
  CHECK(contains(error_with("1\n2\n3\n\n"), "scores.txt:4: expected one number"));
  CHECK(contains(error_with("1\ntwo\n3"), "scores.txt:2: expected one number"));
  CHECK(contains(error_with("1\n2 3\n3"), "scores.txt:2: expected one number"));
  CHECK(contains(error_with("nan\n2\n3"), "scores.txt:1: expected one number"));
  const std::string missing = error_of([&] { difficulties(dir.path() / "none", kThree, 0); });
  CHECK(contains(missing, "none: No such file or directory; give \"magnitude\" or a file of scores"));
}
