#include "launch/world.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "ddprun/error.hpp"

namespace ddprun::launch {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ExitCode::rendezvous, message);
}

bool is_set(const char* variable) {
  return std::getenv(variable) != nullptr;
}

// The environment variables of one launcher; `named_by` is the variable by which it was recognised.
struct Launcher {
  const char* name;
  const char* named_by;
};

std::string require(const Launcher& launcher, const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') {
    refuse(std::string(variable) + " is not set, but " + launcher.named_by + " is: " + launcher.name +
           " sets both; start the ranks with it, or unset " + launcher.named_by);
  }
  return value;
}

int require_number(const Launcher& launcher, const char* variable, int least, int most) {
  const std::string text = require(launcher, variable);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    refuse(std::string(variable) + " = \"" + text + "\": expected a whole number");
  }
  if (number < least || number > most) {
    refuse(std::string(variable) + " = " + text + ": expected a number from " + std::to_string(least) + " to " +
           std::to_string(most));
  }
  return number;
}

constexpr int kMostRanks = 1 << 20;

// The ranks of this process from the four variables, whose names depend on the launcher.
World place(const Launcher& launcher, const char* rank, const char* size, const char* local_rank,
            const char* local_size) {
  World world;
  world.size = require_number(launcher, size, 1, kMostRanks);
  world.rank = require_number(launcher, rank, 0, kMostRanks);
  world.local_size = require_number(launcher, local_size, 1, kMostRanks);
  world.local_rank = require_number(launcher, local_rank, 0, kMostRanks);
  const auto below = [](const char* small, int value, const char* large, int bound) {
    if (value >= bound) {
      refuse(std::string(small) + " = " + std::to_string(value) + " contradicts " + large + " = " +
             std::to_string(bound) + ": it must be below");
    }
  };
  below(rank, world.rank, size, world.size);
  below(local_rank, world.local_rank, local_size, world.local_size);
  if (world.local_size > world.size) {
    refuse(std::string(local_size) + " = " + std::to_string(world.local_size) + " contradicts " + size + " = " +
           std::to_string(world.size) + ": one node cannot have more ranks than the job");
  }
  return world;
}

World own_world() {
  const Launcher launcher{"ddprun", "DDPRUN_RANK"};
  World world = place(launcher, "DDPRUN_RANK", "DDPRUN_WORLD_SIZE", "DDPRUN_LOCAL_RANK", "DDPRUN_LOCAL_WORLD_SIZE");
  world.source = Source::own;
  world.job_dir = require(launcher, "DDPRUN_JOB_DIR");
  return world;
}

World torchrun_world(const char* named_by) {
  const Launcher launcher{"torchrun", named_by};
  World world = place(launcher, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE");
  world.source = Source::torchrun;
  world.master_addr = require(launcher, "MASTER_ADDR");
  world.master_port = require_number(launcher, "MASTER_PORT", 1, 65535);
  return world;
}

const char* first_set(std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    if (is_set(variable)) return variable;
  }
  return nullptr;
}

// Launchers that start one process per rank but set variables that this version does not read. A size of 1 is not a
// job.
void refuse_unknown_launchers() {
  constexpr struct {
    const char* variable;
    const char* launcher;
  } kUnknown[] = {{"OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"},
                  {"PMI_SIZE", "an MPI launcher (PMI)"},
                  {"SLURM_STEP_NUM_TASKS", "srun"}};
  for (const auto& unknown : kUnknown) {
    const char* value = std::getenv(unknown.variable);
    if (value == nullptr || std::strtol(value, nullptr, 10) <= 1) continue;
    refuse(std::string(unknown.variable) + " = " + value + ": ranks started by " + unknown.launcher +
           " are not in this version; start ddprun once and set launch.nproc, or use torchrun");
  }
}

void check_configured(const World& world, const char* variable, std::optional<int> configured_nproc) {
  if (!configured_nproc || *configured_nproc == world.size) return;
  refuse(std::string(variable) + " = " + std::to_string(world.size) + " contradicts launch.nproc = " +
         std::to_string(*configured_nproc) + ": make them equal, or leave launch.nproc out");
}

}  // namespace

std::optional<World> discover(std::optional<int> configured_nproc) {
  if (is_set("DDPRUN_RANK")) {
    World world = own_world();
    check_configured(world, "DDPRUN_WORLD_SIZE", configured_nproc);
    return world;
  }
  if (const char* named_by = first_set({"RANK", "WORLD_SIZE", "LOCAL_RANK"})) {
    World world = torchrun_world(named_by);
    check_configured(world, "WORLD_SIZE", configured_nproc);
    return world;
  }
  refuse_unknown_launchers();
  return std::nullopt;
}

}  // namespace ddprun::launch
