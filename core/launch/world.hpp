// Who am I: the one place that reads ranks from the environment.
#pragma once

#include <optional>
#include <string>

namespace ddprun::launch {

enum class Source { own, torchrun };  // ddprun's own launcher; torchrun or another that sets RANK and WORLD_SIZE

// A rank's place in the job.
struct World {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  Source source = Source::own;
  std::string job_dir;      // own: the private folder with store, progress and failures; empty under torchrun
  std::string master_addr;  // torchrun
  int master_port = 0;      // torchrun
};

// None when this process was launched by no one and is to launch the ranks itself. Reads DDPRUN_RANK (own launcher),
// then RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT. Throws Error(rendezvous), naming the
// variable, when they are incomplete or contradict each other, and for launchers that are not known in this version
// (mpirun). configured_nproc is launch.nproc where the config gives it explicitly: a world size from outside that
// differs is an error.
std::optional<World> discover(std::optional<int> configured_nproc);

}  // namespace ddprun::launch
