// What a server may do, and the result in the folder: the whole file, its part, or nothing.
#include <doctest/doctest.h>

#include <csignal>

#include "tools/data/fetching.hpp"

using namespace ddprun;
using namespace ddprun::testing;
using namespace std::chrono_literals;

using Names = std::vector<std::string>;

namespace {
const Names kFileOnly{"some.gz"};
const Names kPartOnly{"some.gz.part"};
}  // namespace

TEST_CASE("a file is downloaded once, and later only verified, without a request") {
  Fetching fetching;
  CHECK(fetching.from({"plain"}) == "downloaded");
  CHECK(fetching.file.arrived());
  CHECK(fetching.file.names() == kFileOnly);
  CHECK(fetching.messages.last == fetching.file.remote().bytes);
  CHECK(fetching.messages.lines.empty());
  CHECK(fetching.from({"plain"}) == "already verified");
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

TEST_CASE("after a broken connection only the rest is requested") {
  Fetching fetching;
  CHECK(fetching.from({"firstcut-100000"}) == "downloaded");
  CHECK(fetching.file.arrived());
  CHECK(fetching.answers() == Names{"- 200 100000", "bytes=100000- 206 200000"});
  CHECK(fetching.reported("trying again in 1.00 ms, after byte 100000"));
}

TEST_CASE("bytes of an earlier attempt are not requested again") {
  Fetching fetching;
  fetching.file.leave_part(fetching.file.content().substr(0, 299'000));
  CHECK(fetching.from({"plain"}) == "downloaded");
  CHECK(fetching.file.arrived());
  CHECK(fetching.file.names() == kFileOnly);
  CHECK(fetching.answers() == Names{"bytes=299000- 206 1000"});
  CHECK(fetching.messages.begun.at(0).second == 299'000);
}

TEST_CASE("a complete part is verified and renamed without a request") {
  Fetching fetching;
  fetching.file.leave_part(fetching.file.content());
  CHECK(fetching.from({"plain"}) == "was complete");
  CHECK(fetching.file.arrived());
  CHECK(fetching.answers().empty());
}

TEST_CASE("a part that is longer than the file is started again") {
  Fetching fetching;
  fetching.file.leave_part(fetching.file.content() + "x");
  CHECK(fetching.from({"plain"}) == "downloaded");
  CHECK(fetching.file.arrived());
  CHECK(fetching.answers() == Names{"- 200 300000"});
  CHECK(fetching.reported("is longer than the file"));
}

TEST_CASE("if a server ignores the range, the part starts again, and the file is correct") {
  Fetching fetching;
  CHECK(fetching.from({"firstcutnorange-100000"}) == "downloaded");
  CHECK(fetching.file.arrived());
  CHECK(fetching.answers() == Names{"- 200 100000", "bytes=100000- 200 300000"});
}

TEST_CASE("if a server refuses the range, the whole file is requested") {
  Fetching fetching;
  fetching.file.leave_part(fetching.file.content().substr(0, 1000));
  CHECK(fetching.from({"nothingafter"}) == "downloaded");
  CHECK(fetching.file.arrived());
  CHECK(fetching.answers() == Names{"bytes=1000- 416 0", "- 200 300000"});
  CHECK(fetching.reported("HTTP 416"));
}

TEST_CASE("after repeated broken connections the download fails, and the part is kept") {
  Fetching fetching;
  const std::string error = fetching.from({"cut-1000"});
  CHECK_MESSAGE(contains(error, "1: cannot download some.gz: " + fetching.url("cut-1000") + ": "), error);
  CHECK_MESSAGE(contains(error, "(3 attempts); try --mirror URL, or put the file into "), error);
  CHECK(fetching.answers() == Names{"- 200 1000", "bytes=1000- 206 1000", "bytes=2000- 206 1000"});
  CHECK(fetching.file.names() == kPartOnly);
  CHECK(read_file(fetching.file.part()) == fetching.file.content().substr(0, 3000));
}

TEST_CASE("progress resets the count of attempts: a bad connection succeeds") {
  Fetching fetching;
  auto limits = quick();
  limits.progress = 20'000;
  CHECK(fetching.from({"cut-20000"}, limits) == "downloaded");
  CHECK(fetching.file.arrived());
  CHECK(fetching.answers().size() == 15);
}

TEST_CASE("without a Content-Length, an early end is a broken connection") {
  Fetching fetching;
  CHECK(fetching.from({"unannounced"}) == "downloaded");
  std::filesystem::remove(fetching.file.path());
  const std::string error = fetching.from({"unannounced-1000"});
  CHECK_MESSAGE(contains(error, "it ends after 3000 of 300000 bytes (3 attempts)"), error);
}

TEST_CASE("a server that announces another size is refused before a byte is written") {
  Fetching fetching;
  for (const char* behaviour : {"short-1", "long-1"}) {
    CAPTURE(behaviour);
    const std::string error = fetching.from({behaviour});
    const std::string offered = behaviour == std::string("short-1") ? "299999" : "300001";
    CHECK_MESSAGE(contains(error, "it offers " + offered + " bytes, and the file has 300000"), error);
    CHECK(fetching.file.names().empty());
  }
  CHECK(fetching.answers().size() == 2);  // neither is tried again
}

TEST_CASE("a range of another file is refused, and the part is kept") {
  Fetching fetching;
  fetching.file.leave_part(fetching.file.content().substr(0, 1000));
  CHECK(contains(fetching.from({"othertotal-5"}), "it offers 5 bytes, and the file has 300000"));
  CHECK(contains(fetching.from({"otherrange-7"}), "it sends a range that was not requested"));
  CHECK(fetching.file.names() == kPartOnly);
  CHECK(fetching.from({"plain"}) == "downloaded");
  CHECK(fetching.answers().back() == "bytes=1000- 206 299000");
}

TEST_CASE("a server that sends too much is stopped, and nothing is kept") {
  Fetching fetching;
  const std::string error = fetching.from({"more-1000000"});
  CHECK_MESSAGE(contains(error, "it sends more than the 300000 bytes that the file has"), error);
  CHECK(fetching.file.names().empty());
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

TEST_CASE("after a source with a wrong bit the next source starts from the beginning") {
  Fetching fetching;
  CHECK(fetching.from({"corrupt-150000", "plain"}) == "downloaded");
  CHECK(fetching.file.arrived());
  CHECK(fetching.answers() == Names{"- 200 300000", "- 200 300000"});
  CHECK(fetching.reported("it sends another file than the published one"));
  std::filesystem::remove(fetching.file.path());
  const std::string error = fetching.from({"corrupt-5", "status-404"});
  CHECK_MESSAGE(contains(error, fetching.url("corrupt-5") + ": it sends another file"), error);
  CHECK_MESSAGE(contains(error, fetching.url("status-404") + ": HTTP 404"), error);
}

TEST_CASE("after a part with a wrong bit, the same source is tried again for the whole file") {
  Fetching fetching;
  std::string part = fetching.file.content().substr(0, 1000);
  part[0] ^= 1;
  fetching.file.leave_part(part);
  CHECK(fetching.from({"plain"}) == "downloaded");
  CHECK(fetching.file.arrived());
  CHECK(fetching.answers() == Names{"bytes=1000- 206 299000", "- 200 300000"});
  CHECK(fetching.reported("the part before " + fetching.url("plain") + " seems to be damaged"));
}

TEST_CASE("a complete part with a wrong bit is started again") {
  Fetching fetching;
  std::string part = fetching.file.content();
  part[299'999] ^= 1;
  fetching.file.leave_part(part);
  CHECK(fetching.from({"plain"}) == "downloaded");
  CHECK(fetching.file.arrived());
  CHECK(fetching.reported("some.gz.part is damaged; starting from the beginning"));
}

TEST_CASE("an endless error page is stopped at its first byte, and its status is reported") {
  Fetching fetching;
  CHECK(contains(fetching.from({"endless-404"}), fetching.url("endless-404") + ": HTTP 404; try --mirror"));
  CHECK(contains(fetching.from({"endless-503"}), "HTTP 503 (3 attempts)"));
  CHECK(fetching.answers() == Names{"- 404 0", "- 503 0", "- 503 0", "- 503 0"});
  CHECK(fetching.file.names().empty());
}

TEST_CASE("a request to stop works before a file and while one is read") {
  const auto interrupted = [](const Fetching& fetching) {
    fetch::Stop stop;
    Messages messages;
    raise(SIGINT);
    return error_of(
        [&] { fetch::download(fetching.file.remote(), fetching.file.folder().string(), {}, quick(), stop, messages); });
  };
  const Fetching fetching;
  CHECK(interrupted(fetching) == "130: interrupted");
  CHECK(fetching.file.names().empty());
  std::ofstream(fetching.file.path()) << fetching.file.content();
  CHECK(interrupted(fetching) == "130: interrupted");
  CHECK(fetching.file.names() == kFileOnly);
}

TEST_CASE("permanent errors are not retried; temporary errors are") {
  Fetching fetching;
  CHECK(contains(fetching.from({"status-404"}), fetching.url("status-404") + ": HTTP 404; try --mirror"));
  CHECK(fetching.answers().size() == 1);
  CHECK(fetching.file.names().empty());
  CHECK(contains(fetching.from({"status-503"}), "HTTP 503 (3 attempts)"));
  CHECK(fetching.answers().size() == 4);
  CHECK(fetching.from({"firststatus-500"}) == "downloaded");
  CHECK(fetching.reported("HTTP 500; trying again"));
  CHECK(fetching.file.arrived());
}

TEST_CASE("a page with status 200 instead of the file is refused by its size") {
  Fetching fetching;
  std::ofstream(fetching.file.served() / kName) << "<html>log in first</html>";
  CHECK(contains(fetching.from({"plain"}), "it offers 25 bytes"));
  CHECK(fetching.file.names().empty());
}

TEST_CASE("after a stall the rest is requested again") {
  Fetching fetching;
  CHECK(fetching.from({"firststall-1000"}, quick_to_see_a_stall(1s)) == "downloaded");
  CHECK(fetching.file.arrived());
  CHECK(fetching.answers() == Names{"- 200 1000", "bytes=1000- 206 299000"});
  CHECK(fetching.reported("Operation too slow"));
}

TEST_CASE("a slow server is not stalled") {
  Fetching fetching;
  // 120 pieces, 2.4 s: longer than the limit of a stall.
  CHECK(fetching.from({"slow-2500"}, quick_to_see_a_stall(2s)) == "downloaded");
  CHECK(fetching.answers().size() == 1);
}

TEST_CASE("redirections are followed only to http and https") {
  Fetching fetching;
  const std::string error = fetching.from({"tofile"});
  CHECK_MESSAGE(contains(error, "Protocol \"file\" not supported or disabled"), error);
  CHECK(fetching.file.names().empty());
  const std::string endless = fetching.from({"tomyself"});
  CHECK_MESSAGE(contains(endless, "Maximum (10) redirects followed"), endless);
  CHECK(fetching.from({"toplain"}) == "downloaded");
  CHECK(fetching.file.arrived());
}

TEST_CASE("a redirection keeps the range") {
  Fetching fetching;
  fetching.file.leave_part(fetching.file.content().substr(0, 1000));
  CHECK(fetching.from({"toplain"}) == "downloaded");
  CHECK(fetching.answers().back() == "bytes=1000- 206 299000");
}

TEST_CASE("the next source resumes where the first one failed; if all fail, all reasons are reported") {
  Fetching fetching;
  CHECK(fetching.from({"cut-50000", "plain"}) == "downloaded");
  CHECK(fetching.answers().back() == "bytes=150000- 206 150000");
  CHECK(fetching.reported("trying the next source"));
  std::filesystem::remove(fetching.file.path());
  const std::string error = fetching.from({"status-403", "status-404"});
  CHECK(contains(error, fetching.url("status-403") + ": HTTP 403; " + fetching.url("status-404") + ": HTTP 404;"));
}

TEST_CASE("an unreachable host is tried once and named") {
  Fetching fetching;
  // Nothing listens on port 1 of the loopback interface.
  const std::string error = fetching.from_urls({"http://127.0.0.1:1/some.gz"});
  CHECK_MESSAGE(contains(error, "http://127.0.0.1:1/some.gz: Failed to connect to 127.0.0.1"), error);
  CHECK_MESSAGE(!contains(error, "attempts"), error);
  CHECK(fetching.file.names().empty());
}

TEST_CASE("a folder can be a source, also for the rest of a file") {
  Fetching fetching;
  const std::string url = "file://" + (fetching.file.served() / kName).string();
  CHECK(fetching.from_urls({url}) == "downloaded");
  CHECK(fetching.file.arrived());
  std::filesystem::remove(fetching.file.path());
  fetching.file.leave_part(fetching.file.content().substr(0, 1000));
  CHECK(fetching.from_urls({url}) == "downloaded");
  CHECK(fetching.file.arrived());
  std::filesystem::remove(fetching.file.path());
  std::filesystem::resize_file(fetching.file.served() / kName, 1000);
  CHECK(contains(fetching.from_urls({url}), "it offers 1000 bytes, and the file has 300000"));
  CHECK(contains(fetching.from_urls({url + "-none"}), "Couldn't open file"));
  CHECK(fetching.file.names().empty());
}

TEST_CASE("the environment's proxy is used, as curl uses it") {
  Fetching fetching;
  const std::string proxy = fetching.server.base("");
  setenv("http_proxy", proxy.c_str(), 1);
  CHECK(fetching.from_urls({"http://ddprun.invalid/plain/some.gz"}) == "downloaded");
  unsetenv("http_proxy");
  CHECK(fetching.server.requests() == Names{"http://ddprun.invalid/plain/some.gz - 200 300000"});
}
