// Rank discovery: the only code that reads ranks from the environment.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/store.hpp"
#include "launch/net/secret.hpp"

namespace ddprun::launch {

// A rank in the job: its number, and where the others are.
struct World {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;        // ranks on this host; 0 before locate() if the launcher does not set it
  int cores = 0;             // this rank's part of the cores that it may use, set by locate(); 0: 1/local_size of them
  std::optional<int> nproc;  // the local_size that the command line demands

  std::string launcher = "ddprun";  // who started the ranks, for messages
  // ddprun's own launcher: the private folder with the progress table and failure records of this host; else empty.
  std::string job_dir;
  // Where the ranks meet, unless ddprun's launcher has started them on one host.
  std::string master_addr;
  int master_port = 0;
  bool agent_store = false;  // torchrun's agent hosts a store there
  bool insecure = false;     // launch.insecure: no secret is needed
  std::string job;           // other launchers: an id that is different for each job
  int restarts = 0;          // how often another launcher has restarted the ranks; equal on all ranks after they met
  // The address of this host by which the other hosts reach it; empty if it is not known. If all ranks are on one host,
  // it may be a loopback address or empty.
  std::string address;
  StoreAddress server;  // of the store, after open_store(); without a host if the store is a folder

  bool is_own() const { return !job_dir.empty(); }
  // ddprun's launcher has started all ranks on this host: they share its job folder.
  bool on_one_host() const { return is_own() && master_port == 0; }
};

// Nothing if no launcher started this process, so that it must launch the ranks itself. Tried in this order: ddprun's
// own launcher, torchrun, Open MPI, MVAPICH, Intel MPI, Hydra (MPICH), PALS, Slurm (srun), other PMI launchers, and
// last RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (PyTorch's env://). If srun or an MPI launcher started only one
// process, this is not a rank. LOCAL_RANK and LOCAL_WORLD_SIZE are optional under env://.
//
// Where the ranks meet: MASTER_ADDR and MASTER_PORT. Without MASTER_ADDR: this host if all ranks are on it, or the
// first host of the Slurm step. Without MASTER_PORT: port_of() the job's id. If the launcher gives no id, the id is the
// pid of the launcher, the parent of all ranks on one host.
//
// `nproc`: ranks on this host, if the command line gives a number. Throws Error(rendezvous) that names the variable if
// variables are missing, or contradict each other or `nproc`.
std::optional<World> discover(std::optional<int> nproc);

// Unsets the variables in which discover() finds a rank of another launcher, so that child processes are not ranks of
// that launcher. Call it before the first thread.
void forget_launcher();

// The port for a job with this id: from 20000 to 29999, the same on all hosts.
int port_of(std::string_view job);

// Sets what a rank knows only after the rendezvous: cores, address and restarts, and local_rank and local_size if the
// launcher did not set them: ranks with the same kernel, IPC and PID namespaces are on one host. Collective. Throws as
// Store::get, and Error(rendezvous) if rank 0 has another world size, or world.nproc is not the number of ranks here.
void locate(World& world, Store& store, std::chrono::milliseconds timeout);

// The compute threads for this rank: world.cores, or else its share of the cores that it may use; at least 1.
int threads_of_rank(const World& world);

// Whether the compute threads of `ranks` ranks leave none of `cores` cores free. `threads`: of each rank; 0: each rank
// has its share of the cores, so all are in use. False for ranks with one thread, which never waits for another. Pure.
bool fill_cores(int64_t ranks, int64_t threads, int64_t cores);

}  // namespace ddprun::launch
