// Ranks that are forked from the launcher: they have what the launcher has loaded and prepared, and need not do it
// again. LibTorch alone takes 0.14 s.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/child.hpp"

namespace ddprun::launch {

// Processes that wait until start() makes ranks of them. They end with this process.
class ForkedRanks {
 public:
  // Runs in a rank, with its environment; the rank exits with the result, without destructors of static objects.
  using Main = std::function<int()>;

  // Forks `count` processes. Call it while there is one thread, and no descriptor is open that a rank must not share.
  // Throws Error(failure).
  ForkedRanks(int count, const Main& main);
  // Ends those that were not started.
  ~ForkedRanks();
  ForkedRanks(const ForkedRanks&) = delete;
  ForkedRanks& operator=(const ForkedRanks&) = delete;

  // Makes a rank of a process that waits, with exactly the variables of `environment` ("NAME=value"); nothing if there
  // is none left. Calls `before_start` with its id first. /proc shows this process's command line and variables for the
  // rank, but its name there is "ddprun-rank<N>".
  std::optional<Child> start(const std::vector<std::string>& environment,
                             const std::function<void(pid_t)>& before_start);

 private:
  struct Waiting {
    Child child;
    UniqueFd orders;
  };
  std::vector<Waiting> waiting_;
};

}  // namespace ddprun::launch
