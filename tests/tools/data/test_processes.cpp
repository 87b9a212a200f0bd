// Fetches in separate processes: killed, interrupted, two at once.
#include <doctest/doctest.h>

#include <csignal>
#include <memory>
#include <tuple>

#include "tools/data/fetching.hpp"

using namespace ddprun;
using namespace ddprun::testing;

namespace {

// The command that fetches the file from `behaviour`.
std::vector<std::string> command(const Fetching& fetching, const std::string& behaviour) {
  const auto& remote = fetching.file.remote();
  return {FETCH_TOOL,  fetching.file.folder().string(), fetching.server.base(behaviour),
          remote.name, std::to_string(remote.bytes),    remote.sha256};
}
Process fetch_process(const Fetching& fetching, const std::string& behaviour) {
  return Process(command(fetching, behaviour), {});
}

// Waits until the part holds that many bytes.
bool grows_to(const Fetching& fetching, std::uintmax_t bytes) {
  return eventually([&] {
    std::error_code absent;
    const std::uintmax_t size = std::filesystem::file_size(fetching.file.part(), absent);
    return !absent && size >= bytes;
  });
}

}  // namespace

TEST_CASE("a process that is killed leaves a part, and the next one fetches only the rest") {
  Fetching fetching;
  {
    Process killed = fetch_process(fetching, "stall-100000");
    REQUIRE(grows_to(fetching, 100'000));
    killed.send(SIGKILL);
    CHECK(killed.wait().code == 128 + SIGKILL);
  }
  CHECK(std::filesystem::exists(fetching.file.part()));
  const ProcessResult next = fetch_process(fetching, "plain").wait();
  CHECK(next.code == 0);
  CHECK(contains(next.err, "of which 97.7 KiB are here"));
  CHECK(fetching.file.arrived());
  CHECK(fetching.answers() == std::vector<std::string>{"- 200 100000", "bytes=100000- 206 200000"});
}

TEST_CASE("SIGINT and SIGTERM keep the part, report it, and end with 130 and 143") {
  for (const auto& [signal, code, word] :
       {std::tuple{SIGINT, 130, "interrupted"}, std::tuple{SIGTERM, 143, "terminated"}}) {
    Fetching fetching;
    Process process = fetch_process(fetching, "stall-100000");
    REQUIRE(grows_to(fetching, 100'000));
    process.send(signal);
    const ProcessResult result = process.wait();
    CHECK(result.code == code);
    CHECK(contains(result.err, std::string(word) + ": " + fetching.file.part().string() +
                                   " holds 97.7 KiB of 293 KiB; the same command resumes from there"));
    CHECK(std::filesystem::file_size(fetching.file.part()) == 100'000);
  }
}

TEST_CASE("a fetch that is interrupted before the first byte leaves nothing") {
  Fetching fetching;
  Process process = fetch_process(fetching, "stall-0");
  REQUIRE(eventually([&] { return !fetching.answers().empty(); }));
  process.send(SIGINT);
  CHECK(process.wait().code == 130);
  CHECK(fetching.file.names().empty());
}

TEST_CASE("of two fetches into one folder the second waits, and then finds the file") {
  Fetching fetching;
  Process first = fetch_process(fetching, "slow-3000");
  REQUIRE(grows_to(fetching, 3'000));
  first.send(SIGSTOP);  // until the second is there
  Process second = fetch_process(fetching, "plain");
  REQUIRE(eventually([&] { return contains(second.err(), "another process"); }));
  first.send(SIGCONT);
  const ProcessResult waited = second.wait();
  CHECK(first.wait().code == 0);
  CHECK(waited.code == 0);
  CHECK(contains(waited.err, "another process fetches it into " + fetching.file.folder().string()));
  CHECK(contains(waited.err, "some.gz: already verified"));
  CHECK(fetching.file.arrived());
  CHECK(fetching.file.names() == std::vector<std::string>{"some.gz"});
  CHECK(fetching.answers() == std::vector<std::string>{"- 200 300000"});
}

TEST_CASE("when the first of two is killed, the second resumes its part") {
  Fetching fetching;
  Process first = fetch_process(fetching, "stall-100000");
  REQUIRE(grows_to(fetching, 100'000));
  Process second = fetch_process(fetching, "plain");
  REQUIRE(eventually([&] { return contains(second.err(), "another process"); }));
  first.send(SIGKILL);
  CHECK(second.wait().code == 0);
  CHECK(fetching.file.arrived());
  CHECK(fetching.answers().back() == "bytes=100000- 206 200000");
}

TEST_CASE("a waiting fetch can be interrupted without an effect on the other") {
  Fetching fetching;
  Process first = fetch_process(fetching, "slow-3000");
  REQUIRE(grows_to(fetching, 3'000));
  first.send(SIGSTOP);  // until the second is there
  Process second = fetch_process(fetching, "plain");
  REQUIRE(eventually([&] { return contains(second.err(), "another process"); }));
  second.send(SIGINT);
  CHECK(second.wait().code == 130);
  first.send(SIGCONT);
  CHECK(first.wait().code == 0);
  CHECK(fetching.file.arrived());
}

TEST_CASE("many at once: one fetches, all succeed") {
  Fetching fetching;
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 8; ++i) {
    processes.push_back(std::make_unique<Process>(command(fetching, "plain"), std::vector<std::string>{}));
  }
  for (const auto& process : processes) CHECK(process->wait().code == 0);
  CHECK(fetching.file.arrived());
  CHECK(fetching.file.names() == std::vector<std::string>{"some.gz"});
  CHECK(fetching.answers() == std::vector<std::string>{"- 200 300000"});
}
