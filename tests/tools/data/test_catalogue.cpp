#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "support/error_of.hpp"
#include "tools/data/fetch.hpp"

using namespace ddprun;
using namespace ddprun::fetch;

TEST_CASE("every file of the catalogue has a size, a unique SHA-256, and a source") {
  std::set<std::string> sums, roots;
  std::size_t files = 0;
  for (const DataSet& set : catalogue()) {
    CAPTURE(set.name);
    CHECK_FALSE(set.files.empty());
    CHECK_FALSE(set.bases.empty());
    for (const std::string& base : set.bases) {
      CHECK((base.starts_with("https://") || base.starts_with("http://")));
      CHECK(base.ends_with("/"));
    }
    roots.insert(set.root);
    for (const RemoteFile& file : set.files) {
      CAPTURE(file.name);
      ++files;
      CHECK(file.bytes > 0);
      CHECK(file.name.find('/') == std::string::npos);
      CHECK(file.sha256.size() == 64);
      CHECK(file.sha256.find_first_not_of("0123456789abcdef") == std::string::npos);
      sums.insert(file.sha256);
    }
  }
  CHECK(files == 9);
  CHECK(sums.size() == files);
  CHECK(roots.size() == catalogue().size());
}

TEST_CASE("an unknown data set is a usage error that names the nearest") {
  CHECK(find_data_set("cifar10").files.at(0).name == "cifar-10-binary.tar.gz");
  CHECK(testing::error_of([] { find_data_set("minst"); }) ==
        "2: data set \"minst\": expected \"mnist\", \"fashion-mnist\" or \"cifar10\" (did you mean \"mnist\"?)");
}
