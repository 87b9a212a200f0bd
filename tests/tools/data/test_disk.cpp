// Disk errors: the error has the path and the reason, and the fetched bytes are kept.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include "tools/data/fetching.hpp"

using namespace ddprun;
using namespace ddprun::testing;

namespace {

// Limits the files of this process to `bytes`: write() then fails as on a full disk, with EFBIG instead of ENOSPC.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

}  // namespace

TEST_CASE("a full disk ends the download with path and reason, and the next one resumes") {
  Fetching fetching;
  {
    const FileSizeLimit limit(100'000);
    const std::string error = fetching.from({"plain"});
    CHECK_MESSAGE(error.starts_with("1: cannot write "), error);
    CHECK_MESSAGE(error.ends_with("to " + fetching.file.part().string() + ": File too large"), error);
  }
  CHECK(fetching.file.names() == std::vector<std::string>{"some.gz.part"});
  CHECK(fetching.answers().size() == 1);  // a full disk is not a broken connection
  CHECK(fetching.from({"plain"}) == "downloaded");
  CHECK(fetching.file.arrived());
  CHECK(contains(fetching.answers().back(), "bytes=100000- 206"));
}

TEST_CASE("a folder that cannot be created is an error with the reason") {
  Fetching fetching;
  fetch::Stop stop;
  const std::string folder = (fetching.file.served() / kName / "below").string();  // below a file
  CHECK(error_of([&] {
          fetch::download(fetching.file.remote(), folder, {fetching.url("plain")}, quick(), stop, fetching.messages);
        }) == "1: cannot create folder " + folder + ": Not a directory");
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
