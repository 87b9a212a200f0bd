#include <doctest/doctest.h>

#include <vector>

#include "comm/faulty_backend.hpp"
#include "comm/joined.hpp"
#include "comm/shared_table.hpp"
#include "comm/single_process_backend.hpp"
#include "support/error_of.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::comm {
namespace {

using namespace std::chrono_literals;
using testing::As;
using testing::Rank;

constexpr auto kDeadline = 60s;

// Three steps of one allreduce of four ones by two ranks that compare their calls; rank 1 makes the fault in step 2.
// Returns what each rank has, or its error.
std::vector<std::string> results_of(CommFault kind) {
  const testing::TempDir folder;
  const auto outcomes = testing::run_ranks(2, As::processes, kDeadline, [&](Rank& rank) {
    auto plugin = join(fake("good"), options_of(rank));
    const auto recorder = plugin->recorder();
    plugin->compare_calls(shared_table(map_table((folder.path() / "table").string(), 2), rank.rank()));
    std::unique_ptr<CommBackend> backend = std::move(plugin);
    if (rank.rank() == 1) backend = faulty(std::move(backend), {kind, 2, 1ms}, recorder);
    std::vector<float> values(4, 1);
    for (int step = 1; step <= 3; ++step) {
      recorder->set_step(step);
      backend->allreduce({.send = values.data(), .recv = values.data(), .count = 4}).wait(kDeadline);
      if (values != std::vector<float>(4, static_cast<float>(1 << step))) {
        throw std::runtime_error("wrong in step " + std::to_string(step));
      }
    }
  });
  std::vector<std::string> errors;
  for (const auto& outcome : outcomes) errors.push_back(outcome.error);
  return errors;
}

TEST_CASE("a collective that comes later changes nothing") {
  CHECK(results_of(CommFault::delay) == std::vector<std::string>{"", ""});
}

TEST_CASE("an allreduce with one element less is a mismatch, which both ranks see before data moves") {
  for (const std::string& error : results_of(CommFault::shape)) {
    CHECK_MESSAGE(error.find("mismatch") != std::string::npos, error);
    CHECK(error.find("allreduce 2 (float32 x 4, sum)") != std::string::npos);
    CHECK(error.find("allreduce 2 (float32 x 3, sum)") != std::string::npos);
  }
}

TEST_CASE("an allreduce of another dtype or operation is a mismatch, which both ranks see") {
  for (const auto& [kind, call] :
       {std::pair(CommFault::dtype, "int32 x 4, sum"), {CommFault::op, "float32 x 4, max"}}) {
    for (const std::string& error : results_of(kind)) {
      CHECK_MESSAGE(error.find("mismatch") != std::string::npos, error);
      CHECK_MESSAGE(error.find(call) != std::string::npos, error);
    }
  }
}

TEST_CASE("an allreduce for the next bucket is a mismatch, although the shapes are equal") {
  for (const std::string& error : results_of(CommFault::order)) {
    CHECK_MESSAGE(error.find("mismatch: rank 0 called allreduce 2 (float32 x 4, sum), "
                             "rank 1 called allreduce 2 (float32 x 4, sum, bucket 0)") != std::string::npos,
                  error);
  }
}

TEST_CASE("a rank that leaves out an allreduce keeps its own numbers") {
  const auto backend = faulty(single_process_backend(), {CommFault::drop, 1, {}}, [] {
    auto recorder = std::make_shared<FlightRecorder>();
    recorder->set_step(1);
    return recorder;
  }());
  const std::vector<float> send(4, 5);
  std::vector<float> recv(4, 1);
  const Collective call{.send = send.data(), .recv = recv.data(), .count = 4};
  backend->allreduce(call).wait(kDeadline);
  CHECK(recv == std::vector<float>(4, 1));
  backend->allreduce(call).wait(kDeadline);  // only the first one
  CHECK(recv == send);
}

}  // namespace
}  // namespace ddprun::comm
