#include "launch/world.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "ddprun/error.hpp"

namespace {

using namespace ddprun;
using namespace ddprun::launch;
using Variables = std::map<std::string, std::string>;

// Sets a launcher's environment during a test, without the variables of the launcher of this test program.
class Environment {
 public:
  explicit Environment(const Variables& variables) {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                             "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "DDPRUN_RANK",
                             "DDPRUN_WORLD_SIZE", "DDPRUN_LOCAL_RANK", "DDPRUN_LOCAL_WORLD_SIZE", "DDPRUN_JOB_DIR"}) {
      const char* value = std::getenv(name);
      if (value != nullptr) before_[name] = value;
      unsetenv(name);
    }
    for (const auto& [name, value] : variables) {
      setenv(name.c_str(), value.c_str(), 1);
      mine_[name] = value;
    }
  }
  ~Environment() {
    for (const auto& [name, value] : mine_) unsetenv(name.c_str());
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  Variables before_, mine_;
};

const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "localhost"},
                             {"MASTER_PORT", "29500"}};
const Variables kOwn = {{"DDPRUN_RANK", "1"},
                        {"DDPRUN_WORLD_SIZE", "2"},
                        {"DDPRUN_LOCAL_RANK", "1"},
                        {"DDPRUN_LOCAL_WORLD_SIZE", "2"},
                        {"DDPRUN_JOB_DIR", "/somewhere"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

// The error must have the code of rendezvous and name the variable.
void check_refused(const Variables& variables, const std::string& named, std::optional<int> nproc = {}) {
  CAPTURE(named);
  const Environment environment(variables);
  try {
    discover(nproc);
    FAIL_CHECK("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::rendezvous);
    CHECK_MESSAGE(std::string(error.what()).find(named) != std::string::npos, error.what());
  }
}

TEST_CASE("without a launcher there is no world") {
  const Environment environment(Variables{{"MASTER_ADDR", "left over"}});
  CHECK(!discover(4));
}

TEST_CASE("torchrun's variables give a world") {
  const Environment environment(kTorchrun);
  const auto world = discover(8);
  REQUIRE(world);
  CHECK(world->rank == 5);
  CHECK(world->size == 8);
  CHECK(world->local_rank == 1);
  CHECK(world->local_size == 4);
  CHECK(world->source == Source::torchrun);
  CHECK(world->master_addr == "localhost");
  CHECK(world->master_port == 29500);
  CHECK(world->job_dir.empty());
}

TEST_CASE("our own variables have precedence over torchrun's") {
  Variables both = kTorchrun;
  both.insert(kOwn.begin(), kOwn.end());
  const Environment environment(both);
  const auto world = discover(std::nullopt);
  REQUIRE(world);
  CHECK(world->source == Source::own);
  CHECK(world->rank == 1);
  CHECK(world->size == 2);
  CHECK(world->job_dir == "/somewhere");
}

TEST_CASE("a missing or empty variable is named") {
  for (const auto& [name, value] : kTorchrun) {
    check_refused(without(kTorchrun, name), name);
    check_refused(with(kTorchrun, name, ""), name);
  }
  for (const auto& [name, value] : kOwn) {
    if (name != "DDPRUN_RANK") check_refused(without(kOwn, name), name);
    check_refused(with(kOwn, name, ""), name);
  }
  check_refused({{"WORLD_SIZE", "2"}}, "RANK is not set");
}

TEST_CASE("a value that is not a whole number in range is refused") {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT"}) {
    for (const char* value : {"x", "1x", " 1", "1.5", "-1", "0x1", "99999999999999999999"}) {
      check_refused(with(kTorchrun, name, value), name);
    }
  }
  check_refused(with(kTorchrun, "WORLD_SIZE", "0"), "WORLD_SIZE");
  check_refused(with(kTorchrun, "MASTER_PORT", "0"), "MASTER_PORT");
  check_refused(with(kTorchrun, "MASTER_PORT", "65536"), "MASTER_PORT");
}

TEST_CASE("numbers that contradict each other are refused") {
  check_refused(with(kTorchrun, "RANK", "8"), "RANK = 8 contradicts WORLD_SIZE = 8");
  check_refused(with(kTorchrun, "LOCAL_RANK", "4"), "LOCAL_RANK = 4 contradicts LOCAL_WORLD_SIZE = 4");
  check_refused(with(kTorchrun, "LOCAL_WORLD_SIZE", "9"), "LOCAL_WORLD_SIZE = 9 contradicts WORLD_SIZE = 8");
  check_refused(with(kOwn, "DDPRUN_RANK", "2"), "DDPRUN_RANK = 2 contradicts DDPRUN_WORLD_SIZE = 2");
}

TEST_CASE("a world size in the environment that contradicts launch.nproc is refused") {
  check_refused(kTorchrun, "WORLD_SIZE = 8 contradicts launch.nproc = 2", 2);
}

TEST_CASE("MPI's launchers are refused with advice, unless they started one process") {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    check_refused({{name, "2"}}, name);
    check_refused({{name, "2"}}, "not in this version");
    check_refused({{name, "2"}}, "launch.nproc");
    const Environment one(Variables{{name, "1"}});
    CHECK(!discover(std::nullopt));
  }
}

TEST_CASE("torchrun's variables are used even under an MPI launcher") {
  const Environment environment(with(kTorchrun, "OMPI_COMM_WORLD_SIZE", "8"));
  CHECK(discover(std::nullopt)->source == Source::torchrun);
}

}  // namespace
