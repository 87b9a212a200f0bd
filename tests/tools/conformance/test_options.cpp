// The options of `ddprun-conformance` for scripts and debuggers: files of results, what is run, and where.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "faults.hpp"
#include "launch/net/address.hpp"
#include "support/read_file.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::testing {
namespace {

using Words = std::vector<std::string>;
using Json = nlohmann::json;

// The plugin with a fault, on two ranks.
ProcessResult run_faulty(const std::string& fault, const Words& arguments) {
  Words command{"--plugin", DDPRUN_FAULTY_COMM, "--ranks", "2", "--seed", "1", "--slack", "15000"};
  if (!fault.empty()) command.insert(command.end(), {"--option", "fault=" + fault});
  command.insert(command.end(), arguments.begin(), arguments.end());
  return conformance(command);
}

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST_CASE("if the ranks cannot join, one case fails and nothing else is run") {
  const ProcessResult result = run_faulty("garbage_status", {});
  CHECK(result.code == 6);
  CHECK_MESSAGE(contains(result.out, "FAILED  world 2 processes: lifetime: all ranks join\n"), result.out);
  CHECK_MESSAGE(contains(result.out, "\n1 passed, 1 failed, "), result.out);
  CHECK_MESSAGE(contains(result.out, "not run: world 2 processes: "), result.out);
  CHECK_MESSAGE(contains(result.out, "not run: world 2 threads: "), result.out);
  CHECK_MESSAGE(contains(result.out, " cases: \"lifetime: all ranks join\" failed\n"), result.out);
  CHECK_MESSAGE(lines_of(result.out) < 40, result.out);
}

TEST_CASE("a plugin that crashes while its process ends fails the end of the world") {
  const ProcessResult result =
      run_faulty("crashes_in_finish", {"--as", "processes", "--filter", "auto int32 sum count 7"});
  CHECK(result.code == 6);
  CHECK_MESSAGE(contains(result.out, "FAILED  world 2 processes: the ranks end and leave nothing behind\n"),
                result.out);
}

// The two processes of a job, as a launcher starts them.
std::vector<ProcessResult> launched(const Words& arguments) {
  Words command{DDPRUN_CONFORMANCE, "--plugin", DDPRUN_FAULTY_COMM, "--slack", "15000"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const int port = launch::free_port("127.0.0.1");
  std::vector<std::unique_ptr<Process>> processes;
  for (const char* rank : {"0", "1"}) {
    processes.push_back(std::make_unique<Process>(
        command, Words{std::string("RANK=") + rank, std::string("LOCAL_RANK=") + rank, "WORLD_SIZE=2",
                       "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(port)}));
  }
  std::vector<ProcessResult> results;
  for (const auto& process : processes) results.push_back(process->wait(std::chrono::seconds(100)));
  return results;
}

TEST_CASE("the ranks of a launcher test the plugin together, and rank 0 prints") {
  const auto good = launched({"--filter", "allreduce auto int32", "--filter", "usage"});
  CHECK_MESSAGE(good[0].code == 0, (good[0].out + good[0].err));
  CHECK_MESSAGE(contains(good[0].out, "world 2 launched"), good[0].out);
  CHECK(good[1].code == 0);
  CHECK(good[1].out == "");
  const auto bad = launched({"--option", "fault=wrong_at_some_counts", "--filter", "float32 sum with drawn"});
  CHECK(bad[0].code == 6);
  CHECK_MESSAGE(contains(bad[0].out, "FAILED  world 2 launched: allreduce auto float32 sum with drawn sizes"),
                bad[0].out);
  CHECK(bad[1].code == 6);
  const auto refused = launched({"--ranks", "3"});
  CHECK(refused[0].code == 2);
  CHECK_MESSAGE(contains(refused[0].err, "a launcher has started the ranks"), refused[0].err);
}

TEST_CASE("a suite that a signal ends leaves nothing in $TMPDIR") {
  const TempDir folder;
  Process process({DDPRUN_CONFORMANCE, "--plugin", DDPRUN_FAULTY_COMM}, {"TMPDIR=" + folder.path().string()});
  const auto is_used = [&] { return !std::filesystem::is_empty(folder.path()); };
  REQUIRE(eventually(is_used));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ::kill(process.pid(), SIGTERM);
  const ProcessResult result = process.wait(std::chrono::seconds(20));
  CHECK(result.code == 143);
  CHECK_MESSAGE(contains(result.err, "ended by Terminated"), result.err);
  CHECK_FALSE(is_used());
}

TEST_CASE("--exclude leaves cases out, also of those that --filter chooses") {
  const ProcessResult list = run_faulty("", {"--list", "--filter", "death", "--exclude", "while joining"});
  CHECK(list.code == 0);
  CHECK_MESSAGE(contains(list.out, "death: allreduce"), list.out);
  CHECK_MESSAGE(!contains(list.out, "while joining"), list.out);
  const ProcessResult none = run_faulty("", {"--filter", "death", "--exclude", "death"});
  CHECK(none.code == 2);
  CHECK_MESSAGE(contains(none.err, "--filter, --exclude: no check is left"), none.err);
}

TEST_CASE("--json writes every result") {
  const TempDir folder;
  const std::string json = folder.path() / "results.json";
  const ProcessResult result =
      run_faulty("error_lines", {"--as", "processes", "--filter", "auto, one rank stays away", "--json", json});
  CHECK(result.code == 6);
  const Json all = Json::parse(read_file(json));
  CHECK(all.at("plugin") == "faulty");
  CHECK(all.at("seed") == 1);
  CHECK(all.at("failed") > 0);
  CHECK(all.at("not_run") == 0);
  CHECK(all.at("undeclared").size() > 0);
  int64_t failed = 0;
  for (const auto& one : all.at("cases")) {
    if (one.at("state") != "failed") continue;
    ++failed;
    CHECK(one.at("world") == "world 2 processes");
    CHECK(contains(one.at("text"), "last_error has several lines"));
  }
  CHECK(failed == all.at("failed"));
}

TEST_CASE("a file of results that cannot be written is refused before a case is run") {
  const ProcessResult result = run_faulty("", {"--json", "/nowhere/results.json"});
  CHECK(result.code == 2);
  CHECK_MESSAGE(contains(result.err, "--json /nowhere/results.json: there is no folder /nowhere"), result.err);
  CHECK_MESSAGE(!contains(result.out, "passed"), result.out);
}

TEST_CASE("--no-fork runs the ranks as threads of this process, also those that fail") {
  const ProcessResult good = run_faulty("", {"--no-fork", "--filter", "barrier", "--filter", "stays away"});
  CHECK_MESSAGE(good.code == 0, (good.err + good.out));
  CHECK_MESSAGE(contains(good.out, "world 2 threads"), good.out);
  const ProcessResult bad = run_faulty("error_null", {"--no-fork", "--filter", "one rank stays away"});
  CHECK(bad.code == 6);
  CHECK_MESSAGE(contains(bad.out, "last_error is null"), bad.out);
  for (const Words& other : {Words{"--as", "processes"}, Words{"--hosts", "2x1"}}) {
    Words arguments = {"--no-fork"};
    arguments.insert(arguments.end(), other.begin(), other.end());
    const ProcessResult refused = run_faulty("", arguments);
    CHECK((refused.code == 2 || refused.code == 77));  // 77: this machine cannot make hosts
  }
}

TEST_CASE("with --no-fork a crash ends this process, so that a debugger stops there") {
  const ProcessResult crash =
      conformance({"--dataset", DDPRUN_FAULTY, "--option", "fault=crashes", "--no-fork", "--filter", "every fetch"});
  CHECK(crash.code == 128 + SIGABRT);
}

TEST_CASE("DDPRUN_NO_DEEPBIND=1 loads a plugin under AddressSanitizer, which refuses RTLD_DEEPBIND") {
  const std::string runtime = DDPRUN_ASAN_RUNTIME;
  if (runtime.empty()) {
    MESSAGE("skipped: the compiler has no libasan.so that can be loaded into a program, or this is a sanitizer build");
    return;
  }
  const auto run = [&](const std::string& value) {
    const Words command{DDPRUN_CONFORMANCE, "--plugin", DDPRUN_FAULTY_COMM, "--list"};
    return Process(command, {"LD_PRELOAD=" + runtime, "ASAN_OPTIONS=detect_leaks=0", "DDPRUN_NO_DEEPBIND=" + value})
        .wait(std::chrono::seconds(60));
  };
  const ProcessResult with = run("0"), without = run("1");
  CHECK_MESSAGE(with.code == 3, (with.out + with.err));
  const std::string reason =
      "not loaded: this process has AddressSanitizer, which does not allow the flag RTLD_DEEPBIND; set "
      "DDPRUN_NO_DEEPBIND=1";
  CHECK_MESSAGE(contains(with.err, reason), with.err);
  CHECK_MESSAGE(without.code == 0, (without.out + without.err));
}

TEST_CASE("data sets have the same options") {
  const TempDir folder;
  const std::string json = folder.path() / "results.json";
  const ProcessResult result = conformance(
      {"--dataset", DDPRUN_FAULTY, "--option", "fault=counts_calls", "--exclude", "buffers: ", "--json", json});
  CHECK(result.code == 6);
  const Json all = Json::parse(read_file(json));
  CHECK(all.at("failed").get<int>() > 0);
  CHECK(all.at("failed").get<int>() + all.at("passed").get<int>() == 10);
  CHECK(!contains(read_file(json), "buffers: "));
}

}  // namespace
}  // namespace ddprun::testing
