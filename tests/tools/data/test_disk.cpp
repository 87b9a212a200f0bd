// Disk errors: the error has the path and the reason.
#include <doctest/doctest.h>

#include "tools/data/fetching.hpp"

using namespace ddprun;
using namespace ddprun::testing;

TEST_CASE("a folder that cannot be created is an error with the reason") {
  Fetching fetching;
  const std::string folder = (fetching.file.served() / kName / "below").string();  // below a file
  CHECK(error_of([&] { fetch::download(fetching.file.remote(), folder, {fetching.url("plain")}); }) ==
        "1: cannot create folder " + folder + ": Not a directory");
}

TEST_CASE("a part that is a link is not followed") {
  Fetching fetching;
  const TempDir elsewhere;
  const std::string target = elsewhere.write("target", "precious");
  std::filesystem::create_symlink(target, fetching.file.part());
  CHECK(fetching.from({"plain"}) ==
        "1: cannot create " + fetching.file.part().string() + ": Too many levels of symbolic links");
  CHECK(read_file(target) == "precious");
}

TEST_CASE("a link to itself in the file's place is an error that says so") {
  Fetching fetching;
  std::filesystem::create_symlink(fetching.file.path(), fetching.file.path());
  CHECK(fetching.from({"plain"}) ==
        "1: cannot look at " + fetching.file.path().string() + ": Too many levels of symbolic links");
}

TEST_CASE("a folder in the file's place is an error that says so") {
  Fetching fetching;
  std::filesystem::create_directory(fetching.file.path());
  CHECK(fetching.from({"plain"}) == "1: cannot read " + fetching.file.path().string() + ": Is a directory");
}
