// The examples of FIPS 180-4, as NIST publishes them.
#include <doctest/doctest.h>
#include <fcntl.h>

#include "base/unique_fd.hpp"
#include "tools/data/sha256.hpp"
#include "tools/data/some_file.hpp"

using ddprun::fetch::Sha256;
using ddprun::testing::sha256_of;

TEST_CASE("SHA-256 of the published examples") {
  CHECK(sha256_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_of(std::string(1'000'000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("a file is read piece by piece, and reading can stop between pieces") {
  const ddprun::testing::TempDir folder;
  const std::string path = folder.write("file", std::string(1'000'000, 'a'));
  const auto read = [&](int most) {
    const ddprun::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    Sha256 sum;
    int pieces = 0;
    sum.update_from(file.get(), path, [&] {
      if (pieces++ == most) throw std::runtime_error("ended");
    });
    return sum.hex();
  };
  CHECK(read(1000) == sha256_of(std::string(1'000'000, 'a')));
  CHECK_THROWS_WITH(read(2), "ended");
}

TEST_CASE("the sum is available before the end, and can be reset") {
  Sha256 sum;
  sum.update("a", 1);
  CHECK(sum.hex() == sha256_of("a"));
  sum.update("bc", 2);
  CHECK(sum.hex() == sha256_of("abc"));
  sum.restart();
  CHECK(sum.hex() == sha256_of(""));
}
