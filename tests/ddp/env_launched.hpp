// Starts the program of a test as the ranks of another launcher: by RANK and so on in the environment.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ddp/launched.hpp"
#include "launch/free_port.hpp"

namespace ddprun::testing {

// What each rank has returned.
inline std::vector<ProcessResult> run_by_environment(int ranks, const std::string& act) {
  const std::string port = std::to_string(launch::testing::FreePort().number);
  std::vector<std::unique_ptr<Process>> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    processes.push_back(std::make_unique<Process>(
        Words{USER_PROGRAM, act}, Words{"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(ranks),
                                        "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}));
  }
  std::vector<ProcessResult> results;
  for (const auto& process : processes) results.push_back(process->wait(std::chrono::seconds(60)));
  return results;
}

}  // namespace ddprun::testing
