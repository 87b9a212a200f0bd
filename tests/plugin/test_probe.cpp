#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "ddprun/error.hpp"
#include "plugin/library.hpp"
#include "support/error_of.hpp"

namespace ddprun::plugin {
namespace {

std::string outcome_of(const std::function<void()>& load) {
  const File file = {Kind::comm, "tried", "/folder/libddprun_comm_tried.so"};
  return testing::error_of([&] { probe(file, load, std::chrono::seconds(1)); });
}

TEST_CASE("what a library does to the child process that loads it is the error") {
  const auto refused = [](const std::string& why) {
    return "3: comm plugin /folder/libddprun_comm_tried.so: refused: while it was loaded, " + why +
           "; if its file is whole, look at its static constructors and its table";
  };
  CHECK(outcome_of([] {}) == "no error");
  CHECK(outcome_of([] { throw Error(ExitCode::plugin, "the caller gets it, too"); }) == "no error");
  CHECK(outcome_of([] { throw std::runtime_error("no licence"); }) == refused("it threw \"no licence\""));
  CHECK(outcome_of([] { throw 42; }) == refused("it threw something unknown"));
  CHECK(outcome_of([] { std::exit(0); }) == refused("the child process ended with exit code 0"));
  CHECK(outcome_of([] { _exit(3); }) == refused("the child process ended with exit code 3"));
  CHECK(outcome_of([] { std::abort(); }) == refused("the child process crashed: Aborted"));
  CHECK(outcome_of([] {
          while (true) pause();
        }) == refused("no answer within 1 s"));
}

}  // namespace
}  // namespace ddprun::plugin
