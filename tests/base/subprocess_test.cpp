// run_in_subprocess.
#include <doctest/doctest.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "base/subprocess.hpp"
#include "ddprun/error.hpp"
#include "support/process.hpp"

using namespace ddprun;

namespace {

// The exit code and text of the error that run_in_subprocess throws, as "3: text".
std::string error_of(const std::function<int64_t()>& work) {
  try {
    run_in_subprocess(work);
    return "no error";
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + ": " + error.what();
  }
}

}  // namespace

TEST_CASE("the result comes from another process, which leaves nothing behind in this one") {
  int touched = 0;
  const int64_t pid = run_in_subprocess([&] {
    touched = 1;
    return static_cast<int64_t>(::getpid());
  });
  CHECK(pid != ::getpid());
  CHECK(touched == 0);
  CHECK(::kill(static_cast<pid_t>(pid), 0) == -1);
  CHECK(run_in_subprocess([] { return INT64_MIN; }) == INT64_MIN);
}

TEST_CASE("an error is returned with its code and its whole text") {
  const std::string text(100'000, 'x');
  CHECK(error_of([&]() -> int64_t { throw Error(ExitCode::plugin, text); }) == "3: " + text);
  CHECK(error_of([]() -> int64_t { throw std::runtime_error("of another sort"); }) == "1: of another sort");
  CHECK(error_of([]() -> int64_t { throw std::bad_alloc(); }) == "1: out of memory");
  CHECK(error_of([]() -> int64_t { throw 7; }) == "1: an exception of an unknown type");
}

TEST_CASE("signals that interrupt the result do not truncate it") {
  const std::string text(30'000'000, 'x');
  CHECK(error_of([&]() -> int64_t {
          struct sigaction action {};
          action.sa_handler = [](int) {};  // without SA_RESTART, so that a write may be interrupted
          ::sigaction(SIGALRM, &action, nullptr);
          const itimerval often{{0, 500}, {0, 500}};
          ::setitimer(ITIMER_REAL, &often, nullptr);
          throw Error(ExitCode::plugin, text);
        }) == "3: " + text);
}

TEST_CASE("a process that dies is an error, not a result") {
  CHECK(error_of([]() -> int64_t {
          ::raise(SIGKILL);
          return 7;
        }) == "1: the child process crashed: Killed");
  CHECK(error_of([]() -> int64_t { std::exit(0); }) == "1: the child process ended with exit code 0");
  CHECK(error_of([]() -> int64_t { throw 7; }) == "1: an exception of an unknown type");
}

TEST_CASE("a child that calls exit removes nothing that belongs to this process") {
  static const testing::TempDir folder;  // its destructor runs in exit()
  std::ofstream(folder.path() / "file") << "text";
  CHECK(error_of([]() -> int64_t { std::exit(3); }) == "1: the child process ended with exit code 3");
  CHECK(std::filesystem::exists(folder.path() / "file"));
}

TEST_CASE("a process that works too long is ended") {
  const auto slow = [] {
    while (true) ::pause();
    return std::string("too late");
  };
  try {
    text_from_subprocess(slow, std::chrono::seconds(1));
    FAIL("it answered");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "no answer within 1 s");
  }
  CHECK(text_from_subprocess([] { return std::string("in time"); }, std::chrono::seconds(60)) == "in time");
}
