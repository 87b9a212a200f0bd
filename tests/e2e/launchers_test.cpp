// Ranks that MPI's launcher starts, or that get only the variables of env://, give the results of ddprun's own
// launcher.
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "e2e/over_backend.hpp"
#include "e2e/program.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

std::vector<std::string> under_mpirun(int ranks, const std::vector<std::string>& argv) {
  std::vector<std::string> command = {"/usr/bin/env", "mpirun"};
  if (geteuid() == 0) command.push_back("--allow-run-as-root");
  command.insert(command.end(), {"--oversubscribe", "--bind-to", "none", "-n", std::to_string(ranks)});
  command.insert(command.end(), argv.begin(), argv.end());
  return command;
}

bool has_mpirun() {
  if (std::system("command -v mpirun >/dev/null") == 0) return true;
  std::cout << "skipped: there is no mpirun on PATH (openmpi-bin)\n";
  return false;
}

// A port of this host that is free now.
int free_port() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool bound = bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                     getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  close(listener);
  REQUIRE(bound);
  return ntohs(address.sin_port);
}

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

TEST_CASE("RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are enough") {
  Workplace place;
  const std::string config = place.config(kExperiment);
  auto environment = place.environment();
  environment.insert(environment.end(),
                     {"WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(free_port()), "RANK=1"});
  Process second(place.training(config), environment);
  environment.back() = "RANK=0";
  Process first(place.training(config), environment);
  const auto of_first = first.wait(std::chrono::seconds(60)), of_second = second.wait(std::chrono::seconds(60));
  REQUIRE_MESSAGE(of_first.code == 0, of_first.err);
  REQUIRE_MESSAGE(of_second.code == 0, of_second.err);
  check_equal_to_own(place, config, place.new_run(), 2);
}

TEST_CASE("a rank that nobody joins ends with one line, of rank 0 and of another rank") {
  Workplace place;
  for (const std::string rank : {"0", "1"}) {
    CAPTURE(rank);
    auto environment = place.environment();
    environment.insert(environment.end(), {"WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "RANK=" + rank,
                                           "MASTER_PORT=" + std::to_string(free_port())});
    Process process(place.training(place.config(kExperiment), {"launch.timeout=1s"}), environment);
    const auto result = process.wait(std::chrono::seconds(60));
    CHECK(result.code == 4);
    const std::string reason =
        rank == "0" ? "of 2 ranks these did not come: 1" : "cannot reach the store at 127.0.0.1:";
    CHECK_MESSAGE(contains(last_line(result.err), reason), result.err);
    CHECK_MESSAGE(lines_of(result.err).size() == (rank == "0" ? 2 : 1), result.err);  // rank 0 names the launcher first
  }
  CHECK_FALSE(std::filesystem::exists(place.runs()));
}

}  // namespace
