// Ranks that MPI's launcher starts, or that get only the variables of env://, give the results of ddprun's own
// launcher.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <regex>
#include <thread>

#include "e2e/mpirun.hpp"
#include "e2e/over_backend.hpp"
#include "e2e/program.hpp"
#include "e2e/run_files.hpp"
#include "support/paths.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

void check_equal_to_own(Workplace& place, const std::string& config, const std::filesystem::path& theirs, int ranks) {
  const auto own = place.run(place.training(config, {"launch.nproc=" + std::to_string(ranks)}));
  REQUIRE_MESSAGE(own.code == 0, own.err);
  const auto ours = place.new_run();
  CHECK(losses_of(theirs, ranks) == losses_of(ours, ranks));
  CHECK(weights_of(theirs) == weights_of(ours));
  CHECK(summary_of(theirs).at("world") == ranks);
}

TEST_CASE("ranks of mpirun, more than launch.nproc of the file, equal those of our own launcher bit for bit") {
  if (!has_mpirun()) return;
  Workplace place;
  std::string text = kExperiment;
  const std::string config = place.config(text.replace(text.find("threads"), 0, "nproc = 2\n"));
  const auto result = place.run(under_mpirun(3, place.training(config)));
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK_MESSAGE(contains(result.err, "Open MPI has started 3 ranks"), result.err);
  check_equal_to_own(place, config, place.new_run(), 3);
}

TEST_CASE("a number of ranks on the command line that mpirun did not start is refused in one line of each rank") {
  if (!has_mpirun()) return;
  Workplace place;
  const auto result = place.run(under_mpirun(2, place.training(place.config(kExperiment), {"launch.nproc=3"})));
  CHECK_MESSAGE(contains(result.err, "OMPI_COMM_WORLD_LOCAL_SIZE = 2 contradicts launch.nproc = 3"), result.err);
  CHECK(result.code == 4);
  CHECK_FALSE(std::filesystem::exists(place.runs()));
}

TEST_CASE("mpirun -n 1 starts one ddprun, which starts its own ranks") {
  if (!has_mpirun()) return;
  Workplace place;
  const auto result = place.run(under_mpirun(1, place.training(place.config(kExperiment), {"launch.nproc=2"})));
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(summary_of(place.new_run()).at("world") == 2);
}

// The threads of rank 0, from the banner of a run of two ranks.
int threads_under_mpirun(const std::string& bind, const std::vector<std::string>& variables) {
  Workplace place;
  std::string text = kExperiment;
  const std::string config = place.config(text.replace(text.find("threads = 1"), 11, "threads = 0"));
  std::vector<std::string> argv = {"/usr/bin/env"};
  argv.insert(argv.end(), variables.begin(), variables.end());
  const auto program = place.training(config, {"train.steps=2"});
  argv.insert(argv.end(), program.begin(), program.end());
  const auto result = place.run(under_mpirun(2, argv, bind));
  REQUIRE_MESSAGE(result.code == 0, result.err);
  std::smatch match;
  REQUIRE_MESSAGE(std::regex_search(result.err, match, std::regex("cpu, (\\d+) threads? per rank")), result.err);
  return std::stoi(match[1]);
}

TEST_CASE("ranks that are bound to cores of their own do not divide them again; ranks that share cores do") {
  if (!has_mpirun()) return;
  const std::string preload = "LD_PRELOAD=" FAKE_CORES;
  CHECK(threads_under_mpirun("none", {preload, "FAKE_CORES=4", "FAKE_CORES_APART=1"}) == 4);
  CHECK(threads_under_mpirun("none", {preload, "FAKE_CORES=4", "FAKE_CORES_APART=0"}) == 2);
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  CHECK(threads_under_mpirun("none", {}) == std::max(1, cores / 2));
  CHECK(threads_under_mpirun("core", {}) == 1);
}

TEST_CASE("ranks of MPICH, without variables of ours, equal those of our own launcher") {
  if (!std::filesystem::exists(MPICH)) {
    std::cout << "skipped: there is no MPICH at " MPICH " (cmake/setup/torch-tests.txt)\n";
    return;
  }
  Workplace place;
  const std::string config = place.config(kExperiment);
  std::vector<std::string> argv = {MPICH, "-n", "3"};
  const auto program = place.training(config);
  argv.insert(argv.end(), program.begin(), program.end());
  const auto result = place.run(argv);
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK_MESSAGE(contains(result.err, "Hydra has started 3 ranks"), result.err);
  check_equal_to_own(place, config, place.new_run(), 3);
}

TEST_CASE("a rank of MPICH that fails ends the job with its exit code") {
  if (!std::filesystem::exists(MPICH)) return;  // the test above has said why
  Workplace place;
  // If ranks end while it still starts the job, SIGPIPE ends MPICH's launcher itself (141), on a busy machine in a
  // third of the runs.
  const auto result = place.run({MPICH, "-n", "2", "sh", "-c", "\"$@\"; code=$?; sleep 1; exit $code", "sh", program(),
                                 "--config", place.config("[model]\nname = \"none\"\n")});
  CHECK(result.code == 2);
}

// The ranks of a job that have nothing but the variables of env://.
class EnvRanks {
 public:
  EnvRanks(const Workplace& place, const std::vector<std::string>& command, int size) {
    auto environment = place.environment();
    environment.insert(environment.end(), {"WORLD_SIZE=" + std::to_string(size), "MASTER_ADDR=127.0.0.1",
                                           "MASTER_PORT=" + std::to_string(free_port()), ""});
    for (int rank = 0; rank < size; ++rank) {
      environment.back() = "RANK=" + std::to_string(rank);
      ranks_.push_back(std::make_unique<Process>(command, environment));
    }
  }
  Process& operator[](std::size_t rank) { return *ranks_[rank]; }

 private:
  std::vector<std::unique_ptr<Process>> ranks_;
};

TEST_CASE("RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are enough") {
  Workplace place;
  const std::string config = place.config(kExperiment);
  EnvRanks ranks(place, place.training(config), 2);
  for (const std::size_t rank : {0, 1}) {
    const auto result = ranks[rank].wait(std::chrono::seconds(60));
    REQUIRE_MESSAGE(result.code == 0, result.err);
  }
  check_equal_to_own(place, config, place.new_run(), 2);
}

TEST_CASE("a rank that is killed is named by all others, though no launcher tells them") {
  Workplace place;
  EnvRanks ranks(place,
                 place.training(place.config(kExperiment), {"train.epochs=100000", "checkpoint.every_epochs=1000"}), 3);
  REQUIRE(eventually([&] { return contains(ranks[0].out() + ranks[0].err(), "epoch 2"); }));
  kill(ranks[1].pid(), SIGKILL);
  for (const std::size_t rank : {0, 2}) {
    const auto result = ranks[rank].wait(std::chrono::seconds(60));
    CHECK(result.code == 5);
    CHECK_MESSAGE(contains(last_line(result.err), "ddprun: failed: rank 1 ("), result.err);
    CHECK_MESSAGE(contains(last_line(result.err), "lost: the connection has ended"), result.err);
  }
}

TEST_CASE("a rank that fails before the training ends the others, which report its error") {
  Workplace place;
  std::ofstream(place.runs()).put('\n');  // rank 0 cannot make its run folder here
  EnvRanks ranks(place, place.training(place.config(kExperiment)), 2);
  const auto first = ranks[0].wait(std::chrono::seconds(60)), second = ranks[1].wait(std::chrono::seconds(60));
  CHECK(first.code == 1);
  CHECK_MESSAGE(contains(last_line(first.err), "ddprun: failed: experiment.output: cannot create folder"), first.err);
  CHECK(second.code == 5);
  CHECK_MESSAGE(contains(last_line(second.err), "phase rendezvous: experiment.output: cannot create folder"),
                second.err);
}

TEST_CASE("a rank that holds the others up is named while the job runs, and at its end") {
  Workplace place;
  EnvRanks ranks(place, place.training(place.config(kStalling), {"comm.timeout=9s"}), 2);
  const auto first = ranks[0].wait(std::chrono::seconds(60)), second = ranks[1].wait(std::chrono::seconds(60));
  CHECK(first.code == 5);
  CHECK_MESSAGE(contains(first.err, ") has been in step 7 phase data for 5 s; 1 rank waits in step 7 phase "),
                first.err);
  CHECK_MESSAGE(contains(last_line(first.err), "ddprun: failed: rank 0 ("), first.err);
  CHECK_MESSAGE(last_line(first.err).ends_with("; rank 1 was in step 7 phase data"), first.err);
  // Its own thread ends it, because it would not end by itself.
  CHECK(second.code == 5);
  CHECK_MESSAGE(contains(last_line(second.err), "ddprun: failed: rank 0 ("), second.err);
}

TEST_CASE("a rank that nobody joins ends with one line, of rank 0 and of another rank") {
  Workplace place;
  for (const std::string rank : {"0", "1"}) {
    CAPTURE(rank);
    auto environment = place.environment();
    environment.insert(environment.end(), {"WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "RANK=" + rank,
                                           "MASTER_PORT=" + std::to_string(free_port()),
                                           "TORCHELASTIC_ERROR_FILE=" + (place.folder() / "error.json").string()});
    Process process(place.training(place.config(kExperiment), {"launch.timeout=1s"}), environment);
    const auto result = process.wait(std::chrono::seconds(60));
    const auto error = nlohmann::json::parse(read_file(place.folder() / "error.json"));
    CHECK(contains(result.err, error.at("message").at("message").get<std::string>()));
    CHECK(result.code == 4);
    const std::string reason =
        rank == "0" ? "of 2 ranks these did not come: 1" : "cannot reach the store at 127.0.0.1:";
    CHECK_MESSAGE(contains(last_line(result.err), reason), result.err);
    CHECK_MESSAGE(lines_of(result.err).size() == (rank == "0" ? 2 : 1), result.err);  // rank 0 names the launcher first
  }
  CHECK_FALSE(std::filesystem::exists(place.runs()));
}

}  // namespace
