// What a server may do, and the result in the folder: the whole file, its part, or nothing.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tools/data/fetching.hpp"

using namespace ddprun;
using namespace ddprun::testing;

using Names = std::vector<std::string>;

namespace {
const Names kFileOnly{"some.gz"};
const Names kPartOnly{"some.gz.part"};
}  // namespace

TEST_CASE("a file is downloaded once, and later only verified, without a request") {
  Fetching fetching;
  CHECK(fetching.from({"plain"}) == "no error");
  CHECK(fetching.file.arrived());
  CHECK(fetching.file.names() == kFileOnly);
  CHECK(fetching.from({"plain"}) == "no error");
  CHECK(fetching.answers() == Names{"- 200 300000"});
}

TEST_CASE("a different existing file is refused and not changed") {
  Fetching fetching;
  std::ofstream(fetching.file.path()) << "mine";
  const std::string error = fetching.from({"plain"});
  CHECK(error == "2: " + fetching.file.path().string() +
                     " is there, but it is not the published file: SHA-256 expected " + fetching.file.remote().sha256 +
                     ", got " + sha256_of("mine") + "; move it away and run the command again");
  CHECK(read_file(fetching.file.path()) == "mine");
  CHECK(fetching.file.names() == kFileOnly);
  CHECK(fetching.answers().empty());
}

TEST_CASE("a broken connection keeps the part, and the next call requests only the rest") {
  Fetching fetching;
  const std::string error = fetching.from({"cut-100000"});
  CHECK_MESSAGE(error.starts_with("1: cannot download some.gz: " + fetching.url("cut-100000") + ": curl: (18) "),
                error);
  CHECK(fetching.file.names() == kPartOnly);
  CHECK(fetching.from({"plain"}) == "no error");
  CHECK(fetching.file.arrived());
  CHECK(fetching.file.names() == kFileOnly);
  CHECK(fetching.answers() == Names{"- 200 100000", "bytes=100000- 206 200000"});
}

TEST_CASE("a complete part is verified and renamed without a request") {
  Fetching fetching;
  fetching.file.leave_part(fetching.file.content());
  CHECK(fetching.from({"plain"}) == "no error");
  CHECK(fetching.file.arrived());
  CHECK(fetching.answers().empty());
}

TEST_CASE("a part that is longer than the file, or has a wrong bit, is started again") {
  std::string wrong = Fetching().file.content();
  wrong[299'999] ^= 1;
  for (const std::string& part : {wrong + "x", wrong}) {
    Fetching fetching;
    fetching.file.leave_part(part);
    CHECK(fetching.from({"plain"}) == "no error");
    CHECK(fetching.file.arrived());
    CHECK(fetching.answers() == Names{"- 200 300000"});
  }
}

TEST_CASE("after a part with a wrong bit, the same source is tried again for the whole file") {
  Fetching fetching;
  std::string part = fetching.file.content().substr(0, 1000);
  part[0] ^= 1;
  fetching.file.leave_part(part);
  CHECK(fetching.from({"plain"}) == "no error");
  CHECK(fetching.file.arrived());
  CHECK(fetching.answers() == Names{"bytes=1000- 206 299000", "- 200 300000"});
}

TEST_CASE("one wrong bit is detected, the file is not kept, and both sums are reported") {
  Fetching fetching;
  std::string corrupted = fetching.file.content();
  corrupted[150'000] ^= 1;
  CHECK(fetching.from({"corrupt-150000"}) == "1: cannot download some.gz: " + fetching.url("corrupt-150000") +
                                                 ": it sends another file than the published one: SHA-256 expected " +
                                                 fetching.file.remote().sha256 + ", got " + sha256_of(corrupted) +
                                                 "; try --mirror URL, or put the file into " +
                                                 fetching.file.folder().string() + " by hand");
  CHECK(fetching.answers().size() == 1);
  CHECK(fetching.file.names().empty());
}

TEST_CASE("a page with status 200 instead of the file is refused") {
  Fetching fetching;
  std::ofstream(fetching.file.served() / kName) << "<html>log in first</html>";
  CHECK(contains(fetching.from({"plain"}), "it sends another file than the published one"));
  CHECK(fetching.file.names().empty());
}

TEST_CASE("the next source resumes where the first one failed; if all fail, all reasons are reported") {
  Fetching fetching;
  CHECK(fetching.from({"cut-50000", "plain"}) == "no error");
  CHECK(fetching.file.arrived());
  CHECK(fetching.answers().back() == "bytes=50000- 206 250000");
  std::filesystem::remove(fetching.file.path());
  const std::string error = fetching.from({"corrupt-5", "status-404"});
  CHECK_MESSAGE(contains(error, fetching.url("corrupt-5") + ": it sends another file"), error);
  CHECK_MESSAGE(contains(error, fetching.url("status-404") + ": curl: (22) "), error);
  CHECK(fetching.file.names().empty());
}

TEST_CASE("a temporary error of the server is retried") {
  Fetching fetching;
  CHECK(fetching.from({"firststatus-500"}) == "no error");
  CHECK(fetching.file.arrived());
}

TEST_CASE("redirections are followed only to http and https") {
  Fetching fetching;
  const std::string error = fetching.from({"tofile"});
  const bool is_off = contains(error, "Protocol \"file\" not supported or disabled") ||
                      contains(error, "Protocol \"file\" disabled");  // curl 8
  CHECK_MESSAGE(is_off, error);
  CHECK(fetching.file.names().empty());
  CHECK(fetching.from({"toplain"}) == "no error");
  CHECK(fetching.file.arrived());
}

TEST_CASE("an unreachable host is named") {
  Fetching fetching;
  // Nothing listens on port 1 of the loopback interface.
  const std::string error = fetching.from_urls({"http://127.0.0.1:1/some.gz"});
  CHECK_MESSAGE(contains(error, "http://127.0.0.1:1/some.gz: curl: (7) Failed to connect to 127.0.0.1"), error);
  CHECK(fetching.file.names().empty());
}

TEST_CASE("a folder can be a source, also for the rest of a file") {
  Fetching fetching;
  const std::string url = "file://" + (fetching.file.served() / kName).string();
  CHECK(fetching.from_urls({url}) == "no error");
  CHECK(fetching.file.arrived());
  std::filesystem::remove(fetching.file.path());
  fetching.file.leave_part(fetching.file.content().substr(0, 1000));
  CHECK(fetching.from_urls({url}) == "no error");
  CHECK(fetching.file.arrived());
}

TEST_CASE("without curl the error says what to install") {
  Fetching fetching;
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  CHECK(fetching.from({"plain"}) == "1: curl is not installed: apt-get install curl");
  CHECK(fetching.file.names().empty());
  setenv("PATH", path.c_str(), 1);
}
