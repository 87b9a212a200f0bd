#include "launch/world.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <tuple>

#include "base/log.hpp"
#include "base/text.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/host.hpp"
#include "launch/net/address.hpp"
#include "launch/net/bytes.hpp"

namespace ddprun::launch {
namespace {

// The variables of a launcher. Null: it has no such variable.
struct Variables {
  const char* launcher;
  const char* named_by;  // set by this launcher only, so that it identifies it
  const char* rank;
  const char* size;
  const char* local_rank = nullptr;
  const char* local_size = nullptr;
  const char* job = nullptr;          // an id of the job
  const char* restarts = nullptr;     // a number; it may differ between hosts
  const char* part_of_job = nullptr;  // an id of the job's step
  const char* hosts = nullptr;        // how many hosts, and their list
  const char* host_list = nullptr;
};

constexpr Variables kOwn = {
    "ddprun", "DDPRUN_RANK", "DDPRUN_RANK", "DDPRUN_WORLD_SIZE", "DDPRUN_LOCAL_RANK", "DDPRUN_LOCAL_WORLD_SIZE"};
// Under an MPI launcher in a Slurm job, a rank may inherit the variables of the step in which the launcher runs. So
// srun comes after them. Hydra sets MPI_LOCALRANKID, and srun --mpi=pmi2 does not.
constexpr Variables kLaunchers[] = {
    {"torchrun", "TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID",
     "TORCHELASTIC_RESTART_COUNT"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
    {"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"Intel MPI", "I_MPI_HYDRA_UUID", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "I_MPI_HYDRA_UUID"},
    {"Hydra", "MPI_LOCALRANKID", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"PALS", "PALS_RANKID", "PALS_RANKID", "PMI_SIZE", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE", "PALS_APID"},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nullptr, nullptr, "SLURM_JOB_ID", nullptr,
     "SLURM_STEP_ID", "SLURM_STEP_NUM_NODES", "SLURM_STEP_NODELIST"},
    {"a PMI launcher", "PMI_RANK", "PMI_RANK", "PMI_SIZE", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"}};
constexpr Variables kEnvironment = {"env://", nullptr, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};

constexpr const char* kAgentStore = "TORCHELASTIC_USE_AGENT_STORE";

constexpr int kMostRanks = 1 << 20;

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ExitCode::rendezvous, message);
}

// "" if it is not set, or empty.
std::string value_of(const char* variable) {
  const char* value = variable == nullptr ? nullptr : std::getenv(variable);
  return value == nullptr ? "" : value;
}

bool is_set(const char* variable) {
  return variable != nullptr && std::getenv(variable) != nullptr;
}

std::string require(const Variables& launcher, const char* variable) {
  const std::string value = value_of(variable);
  if (value.empty()) {
    refuse(std::string(variable) + " is not set, but " + launcher.named_by + " is: " + launcher.launcher +
           " sets both; start the ranks with it, or unset " + launcher.named_by);
  }
  return value;
}

int number_of(const char* variable, const std::string& text, int least, int most) {
  const auto number = parse_number<int>(text);
  if (!number) refuse(std::string(variable) + " = \"" + text + "\": expected a whole number");
  if (*number < least || *number > most) {
    refuse(std::string(variable) + " = " + text + ": expected a number from " + std::to_string(least) + " to " +
           std::to_string(most));
  }
  return *number;
}

int require_number(const Variables& launcher, const char* variable, int least) {
  return number_of(variable, require(launcher, variable), least, kMostRanks);
}

void require_below(const char* small, int value, const char* large, int bound) {
  if (value < bound) return;
  refuse(std::string(small) + " = " + std::to_string(value) + " contradicts " + large + " = " + std::to_string(bound) +
         ": it must be below");
}

World ranks_from(const Variables& launcher) {
  World world;
  world.launcher = launcher.launcher;
  world.size = require_number(launcher, launcher.size, 1);
  world.rank = require_number(launcher, launcher.rank, 0);
  require_below(launcher.rank, world.rank, launcher.size, world.size);
  world.local_size = 0;
  if (!is_set(launcher.local_rank) && !is_set(launcher.local_size)) return world;
  world.local_size = require_number(launcher, launcher.local_size, 1);
  world.local_rank = require_number(launcher, launcher.local_rank, 0);
  require_below(launcher.local_rank, world.local_rank, launcher.local_size, world.local_size);
  if (world.local_size > world.size) {
    refuse(std::string(launcher.local_size) + " = " + std::to_string(world.local_size) + " contradicts " +
           launcher.size + " = " + std::to_string(world.size) + ": one host cannot have more ranks than the job");
  }
  return world;
}

// RANK and WORLD_SIZE may be set as well as the variables of a launcher.
void refuse_contradictions(const World& world, const Variables& launcher) {
  const auto compare = [&](const char* theirs, int value, const char* plain) {
    const std::string text = value_of(plain);
    if (text.empty() || text == std::to_string(value)) return;
    refuse(std::string(plain) + " = " + text + " contradicts " + theirs + " = " + std::to_string(value) + " of " +
           launcher.launcher + ": unset " + plain);
  };
  compare(launcher.rank, world.rank, "RANK");
  compare(launcher.size, world.size, "WORLD_SIZE");
}

// "node03" of "node[03-05,9],login1": the first host of a Slurm host list.
std::string first_host(const std::string& list) {
  std::string host;
  for (std::size_t at = 0; at < list.size() && list[at] != ','; ++at) {
    if (list[at] != '[') {
      host += list[at];
      continue;
    }
    const std::size_t close = std::min(list.find(']', at), list.size());
    host += list.substr(at + 1, std::min(list.find_first_of(",-", at), close) - at - 1);
    at = close;
  }
  return host;
}

std::string address_of(const World& world, const Variables& launcher) {
  if (const std::string given = value_of("MASTER_ADDR"); !given.empty()) return given;
  if (world.local_size == world.size || value_of(launcher.hosts) == "1") return "127.0.0.1";
  if (const std::string hosts = value_of(launcher.host_list); !hosts.empty()) return first_host(hosts);
  refuse("MASTER_ADDR is not set, and " + world.launcher +
         " started ranks on several hosts: set it to the host of rank 0, and MASTER_PORT to a free port there");
}

void find_master(World& world, const Variables& launcher) {
  world.job = value_of(launcher.job);
  if (launcher.part_of_job != nullptr) world.job.append(".").append(value_of(launcher.part_of_job));
  world.master_addr = address_of(world, launcher);
  if (const std::string port = value_of("MASTER_PORT"); !port.empty()) {
    world.master_port = number_of("MASTER_PORT", port, 1, 65535);
    return;
  }
  if (world.job.empty() && world.local_size == world.size) world.job = std::to_string(::getppid());
  if (world.job.empty()) {
    refuse(
        "MASTER_PORT is not set, and " + world.launcher +
        " has started ranks on several hosts and gives no job id from which a port could be derived: set it to a free "
        "port of the host of rank 0");
  }
  world.master_port = port_of(world.job);
}

// `what`: where local_size comes from.
void refuse_nproc(const World& world, const std::string& what) {
  if (!world.nproc || *world.nproc == world.local_size) return;
  refuse(what + " = " + std::to_string(world.local_size) + " contradicts launch.nproc = " +
         std::to_string(*world.nproc) + ": " + world.launcher + " has started the ranks; leave launch.nproc out");
}

std::optional<World> from(const Variables& launcher, std::optional<int> nproc) {
  World world = ranks_from(launcher);
  refuse_contradictions(world, launcher);
  find_master(world, launcher);
  world.nproc = nproc;
  world.agent_store = value_of(kAgentStore) == "True";
  const std::string restarts = value_of(launcher.restarts);
  if (!restarts.empty()) world.restarts = number_of(launcher.restarts, restarts, 0, std::numeric_limits<int>::max());
  if (world.local_size > 0) refuse_nproc(world, launcher.local_size);
  return world;
}

// A rank with a larger world would wait for ranks that do not exist.
void compare_sizes(const World& world, Store& store, std::chrono::milliseconds timeout) {
  const std::string mine = std::to_string(world.size);
  if (world.rank == 0) return store.set("world size", mine);
  const std::string other = store.require("world size", timeout);
  if (other == mine) return;
  refuse("rank 0 has a job of " + other + " ranks, and rank " + std::to_string(world.rank) + " one of " + mine +
         ": give all ranks the same world size");
}

// What a rank tells the others about where it is.
struct Place {
  int restarts = 0;
  std::string host;
  std::string cores;  // those that it may use: srun and mpirun may bind each rank to some of them
  Route route;        // to the host of rank 0
};
auto fields(Place& place) {
  return std::tie(place.restarts, place.host, place.cores, place.route.from, place.route.to);
}

std::string own_cores() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return "";
  return {reinterpret_cast<const char*>(&set), sizeof set};
}

// Most backends need no address. The one that does refuses to join without it.
Route known_route(const std::string& master) try { return route_to(master); } catch (const Error& error) {
  log::debug(error.what());
  return {};
}

}  // namespace

// FNV-1a.
int port_of(std::string_view job) {
  uint32_t hash = 2166136261u;
  for (const char byte : job) hash = (hash ^ static_cast<uint8_t>(byte)) * 16777619u;
  return 20000 + static_cast<int>(hash % 10000);
}

std::optional<World> discover(std::optional<int> nproc) {
  if (is_set(kOwn.named_by)) {
    World world = ranks_from(kOwn);
    world.job_dir = require(kOwn, "DDPRUN_JOB_DIR");
    if (const std::string store = value_of("DDPRUN_STORE"); !store.empty()) {
      const std::size_t colon = store.rfind(':');
      world.master_addr = store.substr(0, colon);
      world.master_port = number_of("DDPRUN_STORE", store.substr(colon + 1), 1, 65535);
    }
    world.nproc = nproc;
    refuse_nproc(world, kOwn.local_size);
    return world;
  }
  for (const Variables& launcher : kLaunchers) {
    if (!is_set(launcher.named_by)) continue;
    const bool starts_one = std::string_view(launcher.size) != kEnvironment.size && value_of(launcher.size) == "1";
    if (starts_one) return std::nullopt;
    return from(launcher, nproc);
  }
  for (const char* variable : {"RANK", "WORLD_SIZE", "LOCAL_RANK"}) {
    if (!is_set(variable)) continue;
    Variables environment = kEnvironment;
    environment.named_by = variable;
    require(environment, "MASTER_ADDR");
    require(environment, "MASTER_PORT");
    return from(environment, nproc);
  }
  return std::nullopt;
}

void forget_launcher() {
  for (const Variables& launcher : kLaunchers) ::unsetenv(launcher.named_by);
  for (const char* variable : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", kAgentStore}) {
    ::unsetenv(variable);
  }
}

void locate(World& world, Store& store, std::chrono::milliseconds timeout) {
  if (world.on_one_host()) return;
  compare_sizes(world, store, timeout);
  Place mine{world.restarts, host_identity(), own_cores(), known_route(world.master_addr)};
  if (mine.host.empty()) mine.host = "rank " + std::to_string(world.rank);
  world.address = mine.route.from;
  int rank = 0, here = 0, before = 0, sharing = 0;
  for (const std::string& text :
       store.allgather("places", world.rank, world.size, ByteWriter().fields(fields(mine)).bytes(), timeout)) {
    Place other;
    ByteReader(text).fields(fields(other));
    world.restarts = std::max(world.restarts, other.restarts);
    if (other.host == mine.host) {
      if (rank < world.rank) ++before;
      if (other.cores == mine.cores) ++sharing;
      ++here;
    }
    ++rank;
    // The name of rank 0's host may be a loopback address there: the others know by which address they reach it.
    if (!is_loopback(mine.route.from) || other.route.to.empty() || is_loopback(other.route.to)) continue;
    if (is_own(other.route.to)) world.address = other.route.to;
    if (is_loopback(world.address)) world.address.clear();
  }
  if (world.local_size == 0) {
    world.local_rank = before;
    world.local_size = here;
    refuse_nproc(world, "the number of ranks on this host");
  }
  if (here != world.local_size) sharing = world.local_size;  // each rank of this host is in a container of its own
  world.cores = std::max(1, usable_cores() / sharing);
}

int threads_of_rank(const World& world) {
  if (world.cores > 0) return world.cores;
  return std::max(1, usable_cores() / std::max(1, world.local_size));
}

bool fill_cores(int64_t ranks, int64_t threads, int64_t cores) {
  if (threads == 0) threads = std::max<int64_t>(1, cores / std::max<int64_t>(1, ranks));
  return threads > 1 && ranks * threads >= cores;
}

}  // namespace ddprun::launch
