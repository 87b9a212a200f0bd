// Rank discovery: the only place that reads ranks from the environment.
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
  // own: the private folder with store, progress table and failure records; empty under torchrun
  std::string job_dir;
  std::string master_addr;  // torchrun
  int master_port = 0;      // torchrun
};

// Nothing if no launcher started this process, so that it must launch the ranks itself. Reads DDPRUN_RANK (own
// launcher), then RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT. Throws Error(rendezvous)
// that names the variable if they are incomplete or contradictory, and for launchers that this version does not know
// (mpirun). configured_nproc is launch.nproc if the config sets it; a different world size in the environment is an
// error.
std::optional<World> discover(std::optional<int> configured_nproc);

}  // namespace ddprun::launch
