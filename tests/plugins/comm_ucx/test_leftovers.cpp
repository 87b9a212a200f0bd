// What is left on the machine if all ranks are killed at once. UCX's own shared memory has a name for some microseconds
// as the ranks join (docs/ucx.md). A kill at that time may leave a System V segment, and nothing else.
#include <doctest/doctest.h>
#include <sys/shm.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "plugins/comm_ucx/choice.hpp"
#include "plugins/comm_ucx/communicator.hpp"
#include "plugins/kill_all.hpp"

using namespace ddprun::testing;
using ddprun::ucx_backend::kOptions;
using ddprun::ucx_backend::UcxCommunicator;
using std::chrono::microseconds;

namespace {

// Removes the segments from the list and from the machine.
void take_out_segments(std::vector<std::string>& left) {
  std::erase_if(left, [](const std::string& text) {
    const std::string name = "System V segment ";
    const auto at = text.find(name);
    if (at != std::string::npos) shmctl(std::stoi(text.substr(at + name.size())), IPC_RMID, nullptr);
    return at != std::string::npos;
  });
}

}  // namespace

TEST_CASE("nothing is left if all ranks are killed at once after they have joined") {
  for (const std::string algorithm : {"ring", "hierarchical"}) {
    CAPTURE(algorithm);
    CHECK(left_by_killed_ranks<UcxCommunicator>({algorithm, Killed::joined, 20, microseconds(2'000), kOptions}) ==
          std::vector<std::string>());
  }
}

TEST_CASE("nothing but a segment of UCX is left if all ranks are killed at once, at any time") {
  auto left = left_by_killed_ranks<UcxCommunicator>({"ring", Killed::joining, 80, microseconds(500), kOptions});
  take_out_segments(left);
  CHECK(left == std::vector<std::string>());
}
