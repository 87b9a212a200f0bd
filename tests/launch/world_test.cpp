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
    for (const char* name : {"RANK",
                             "WORLD_SIZE",
                             "LOCAL_RANK",
                             "LOCAL_WORLD_SIZE",
                             "MASTER_ADDR",
                             "MASTER_PORT",
                             "TORCHELASTIC_RUN_ID",
                             "OMPI_COMM_WORLD_RANK",
                             "MV2_COMM_WORLD_RANK",
                             "MPI_LOCALRANKID",
                             "PALS_RANKID",
                             "PMI_RANK",
                             "PMIX_RANK",
                             "SLURM_STEP_NUM_TASKS",
                             "SLURM_STEP_NUM_NODES",
                             "SLURM_STEP_NODELIST",
                             "DDPRUN_RANK",
                             "DDPRUN_WORLD_SIZE",
                             "DDPRUN_LOCAL_RANK",
                             "DDPRUN_LOCAL_WORLD_SIZE",
                             "DDPRUN_JOB_DIR"}) {
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

const Variables kTorchrun = {{"TORCHELASTIC_RUN_ID", "run"},
                             {"TORCHELASTIC_RESTART_COUNT", "2"},
                             {"RANK", "5"},
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

const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"},       {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "3"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                            {"PMIX_NAMESPACE", "1234"},          {"PMIX_RANK", "3"}};
const Variables kHydra = {{"PMI_RANK", "1"},
                          {"PMI_SIZE", "2"},
                          {"MPI_LOCALRANKID", "1"},
                          {"MPI_LOCALNRANKS", "2"},
                          {"MASTER_ADDR", "localhost"},
                          {"MASTER_PORT", "29500"}};
const Variables kSlurm = {{"SLURM_STEP_NUM_TASKS", "6"},
                          {"SLURM_PROCID", "4"},
                          {"SLURM_JOB_ID", "77"},
                          {"SLURM_STEP_ID", "0"},
                          {"SLURM_STEP_NUM_NODES", "3"},
                          {"SLURM_STEP_NODELIST", "n[1-3]"},
                          {"PMI_RANK", "4"},
                          {"PMI_SIZE", "6"}};
const Variables kPlain = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "29500"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

// The error must have the exit code of rendezvous and name the variable.
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
  const auto world = discover(4);
  REQUIRE(world);
  CHECK(world->rank == 5);
  CHECK(world->size == 8);
  CHECK(world->local_rank == 1);
  CHECK(world->local_size == 4);
  CHECK(world->launcher == "torchrun");
  CHECK(world->job == "run");  // on all hosts, and so without the number of restarts: torchrun counts those of a host
  CHECK(world->restarts == 2);
  CHECK(world->master_addr == "localhost");
  CHECK(world->master_port == 29500);
  CHECK(world->job_dir.empty());
}

TEST_CASE("ddprun's variables have precedence over torchrun's") {
  Variables both = kTorchrun;
  both.insert(kOwn.begin(), kOwn.end());
  const Environment environment(both);
  const auto world = discover(std::nullopt);
  REQUIRE(world);
  CHECK(world->is_own());
  CHECK(world->rank == 1);
  CHECK(world->size == 2);
  CHECK(world->job_dir == "/somewhere");
}

TEST_CASE("a missing or empty variable is named") {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}) {
    check_refused(without(kTorchrun, name), name);
    check_refused(with(kTorchrun, name, ""), name);
  }
  for (const auto& [name, value] : kOwn) {
    if (name != "DDPRUN_RANK") check_refused(without(kOwn, name), name);
    check_refused(with(kOwn, name, ""), name);
  }
  for (const auto& [name, value] : kPlain) {
    check_refused(without(kPlain, name), name + " is not set");
    check_refused(with(kPlain, name, ""), name);
  }
  check_refused(without(kSlurm, "SLURM_PROCID"), "SLURM_PROCID");
}

TEST_CASE("a value that is not a whole number in range is refused") {
  for (const char* name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"}) {
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

TEST_CASE("a number of ranks on this host that contradicts --set launch.nproc is refused") {
  check_refused(kTorchrun, "LOCAL_WORLD_SIZE = 4 contradicts launch.nproc = 2", 2);
  check_refused(kOpenMpi, "OMPI_COMM_WORLD_LOCAL_SIZE = 4 contradicts launch.nproc = 2", 2);
}

TEST_CASE("the launchers of MPI give a world, and meet on this host if all ranks are on it") {
  const Environment environment(kOpenMpi);
  const auto world = discover(4);
  REQUIRE(world);
  CHECK(world->launcher == "Open MPI");
  CHECK(world->rank == 3);
  CHECK(world->size == 4);
  CHECK(world->local_rank == 3);
  CHECK(world->local_size == 4);
  CHECK(world->master_addr == "127.0.0.1");
  CHECK(world->master_port >= 20000);
  CHECK(world->master_port < 30000);
  const Environment other(with(kOpenMpi, "PMIX_NAMESPACE", "1235"));
  CHECK(discover(4)->master_port != world->master_port);
  CHECK(discover(4)->job == "1235");
}

TEST_CASE("where an MPI launcher does not say where to meet, the variable to set is named") {
  check_refused(with(kOpenMpi, "OMPI_COMM_WORLD_SIZE", "8"), "MASTER_ADDR is not set");
  check_refused(with(without(kHydra, "MASTER_PORT"), "PMI_SIZE", "4"), "MASTER_PORT is not set");
  // Open MPI's daemon on another host runs in a step of one host.
  Variables in_step = with(kSlurm, "SLURM_STEP_NUM_NODES", "1");
  in_step.insert(kOpenMpi.begin(), kOpenMpi.end());
  check_refused(with(in_step, "OMPI_COMM_WORLD_SIZE", "8"), "MASTER_ADDR is not set");
  const Environment environment(kHydra);
  CHECK(discover(std::nullopt)->launcher == "Hydra");
  CHECK(discover(std::nullopt)->master_port == 29500);
}

TEST_CASE("ranks of MPICH on one host meet at a port that depends on the process which started them") {
  const Environment environment(without(without(kHydra, "MASTER_ADDR"), "MASTER_PORT"));
  const auto world = discover(std::nullopt);
  REQUIRE(world);
  CHECK(world->launcher == "Hydra");
  CHECK(world->master_addr == "127.0.0.1");
  CHECK(world->master_port == port_of(std::to_string(getppid())));
}

TEST_CASE("Intel MPI gives an id of the job, from which the port comes on several hosts too") {
  Variables intel = with(with(kHydra, "I_MPI_HYDRA_UUID", "a2740000-0171"), "PMI_SIZE", "4");
  const Environment environment(without(intel, "MASTER_PORT"));
  const auto world = discover(std::nullopt);
  REQUIRE(world);
  CHECK(world->launcher == "Intel MPI");
  CHECK(world->rank == 1);
  CHECK(world->size == 4);
  CHECK(world->local_size == 2);
  CHECK(world->master_port == port_of("a2740000-0171"));
}

TEST_CASE("a step of Slurm meets on its first host, and does not say which ranks share one") {
  const std::map<std::string, std::string> first_of = {
      {"n[1-3]", "n1"}, {"rack[07,09-12]n[2-4]x,login", "rack07n2x"}, {"a,b", "a"}, {"gpu12", "gpu12"}, {"c[3", "c3"}};
  for (const auto& [list, first] : first_of) {
    CAPTURE(list);
    const Environment environment(with(kSlurm, "SLURM_STEP_NODELIST", list));
    const auto world = discover(2);
    REQUIRE(world);
    CHECK(world->launcher == "srun");
    CHECK(world->rank == 4);
    CHECK(world->size == 6);
    CHECK(world->local_size == 0);
    CHECK(world->master_addr == first);
    CHECK(world->job == "77.0");
  }
  const Environment one_host(with(kSlurm, "SLURM_STEP_NUM_NODES", "1"));
  CHECK(discover(std::nullopt)->master_addr == "127.0.0.1");
  const Environment chosen(with(kSlurm, "MASTER_ADDR", "10.0.0.1"));
  CHECK(discover(std::nullopt)->master_addr == "10.0.0.1");
}

TEST_CASE("a launcher in a step of Slurm is used, not the step") {
  Variables both = kSlurm;
  both.insert(kOpenMpi.begin(), kOpenMpi.end());
  const Environment open_mpi(both);
  CHECK(discover(std::nullopt)->launcher == "Open MPI");
  Variables hydra = kHydra;
  hydra.insert(kSlurm.begin(), kSlurm.end());
  const Environment environment(hydra);
  CHECK(discover(std::nullopt)->launcher == "Hydra");
}

TEST_CASE("env:// needs no LOCAL_RANK") {
  const Environment environment(kPlain);
  const auto world = discover(std::nullopt);
  REQUIRE(world);
  CHECK(world->launcher == "env://");
  CHECK(world->rank == 1);
  CHECK(world->local_size == 0);
  check_refused(with(kPlain, "LOCAL_RANK", "0"), "LOCAL_WORLD_SIZE");
}

TEST_CASE("RANK and WORLD_SIZE that contradict the launcher are refused") {
  check_refused(with(kOpenMpi, "RANK", "2"), "RANK = 2 contradicts OMPI_COMM_WORLD_RANK = 3 of Open MPI");
  check_refused(with(kSlurm, "WORLD_SIZE", "2"), "WORLD_SIZE = 2 contradicts SLURM_STEP_NUM_TASKS = 6 of srun");
  const Environment equal(with(kOpenMpi, "RANK", "3"));
  CHECK(discover(std::nullopt)->rank == 3);
}

TEST_CASE("a launcher that started one process is no launcher") {
  const Environment open_mpi(with(kOpenMpi, "OMPI_COMM_WORLD_SIZE", "1"));
  CHECK(!discover(std::nullopt));
  const Environment slurm(with(kSlurm, "SLURM_STEP_NUM_TASKS", "1"));
  CHECK(!discover(std::nullopt));
}

TEST_CASE("torchrun's variables are used even under an MPI launcher") {
  Variables both = kTorchrun;
  both.insert(kOpenMpi.begin(), kOpenMpi.end());
  const Environment environment(both);
  CHECK(discover(std::nullopt)->launcher == "torchrun");
}

}  // namespace
