// A user's program with a training loop of its own, and DistributedDataParallel. The test starts it as ranks. The first
// argument says what it does.
#include "ddp/program.hpp"

int main(int, char** arguments) {
  const ddprun::Group group = ddprun::init({.exit_on_error = true});
  for (program::Acts acts : {program::training_acts(), program::graph_acts(), program::join_acts(),
                             program::hook_acts(), program::module_acts(), program::virtual_acts()}) {
    if (const auto act = acts.find(arguments[1]); act != acts.end()) {
      act->second(group);
      return 0;
    }
  }
  std::fprintf(stderr, "no act \"%s\"\n", arguments[1]);
  return 99;
}
