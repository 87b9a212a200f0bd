#include "cli/config/key_table.hpp"

namespace ddprun::config {

const std::vector<Table>& tables() {
  static const std::vector<Table> all = {
      {"experiment", "What the run is called, and what it can be repeated by."},
      {"launch", "How the ranks are started."},
      {"comm", "How the ranks talk to one another."},
      {"strategy", "How training is spread over the ranks."},
      {"model", "What is trained."},
      {"data", "What it is trained on."},
      {"optimizer", "How the weights change."},
      {"train", "How long, and with what arithmetic."},
      {"checkpoint", "What is kept of the weights."},
      {"log", "What is logged during a run."},
      {"faults",
       "A fault that one rank makes on purpose, so that you see what your set-up does then. A job has it in its first "
       "start, not after a restart. See [reliability.md](reliability.md)."},
  };
  return all;
}

const std::vector<Key>& keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> both = describe_running();
    for (Key& key : describe_learning()) both.push_back(std::move(key));
    return both;
  }();
  return all;
}

}  // namespace ddprun::config
