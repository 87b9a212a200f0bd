// Forced algorithms, options that become NCCL's variables, and the comparison with NCCL's own report.
#include <doctest/doctest.h>

#include <cstdlib>

#include "plugins/comm_nccl/process.hpp"

namespace ddprun::testing {
namespace {

using namespace std::chrono_literals;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "-" : value;
}

// The value of NCCL_ALGO while NCCL joins, and afterwards.
std::string algorithm_of(const std::string& algorithm, bool deterministic) {
  return run_in_subprocess([&](Fake& state) {
    auto options = options_of();
    options.algorithm = algorithm;
    options.deterministic = deterministic;
    const auto backend = comm::join(nccl(), options);
    const std::string text = calls(state);
    const std::string mark = "NCCL_ALGO ";
    const std::size_t at = text.find(mark) + mark.size();
    return text.substr(at, text.find('\n', at) - at) + ", then " + variable("NCCL_ALGO");
  });
}

TEST_CASE("ring and tree are forced for allreduce only, and only while joining") {
  CHECK(algorithm_of("ring", false) == "allreduce:ring, then -");
  CHECK(algorithm_of("tree", false) == "allreduce:tree, then -");
  CHECK(algorithm_of("auto", false) == "-, then -");
  CHECK(algorithm_of("nccl", false) == "-, then -");
  CHECK(algorithm_of("tree", true) == "allreduce:tree;reducescatter:ring, then -");
  CHECK(algorithm_of("auto", true) == "allreduce:ring,tree;reducescatter:ring, then -");
}

TEST_CASE("a contradicting environment is refused; an equal one is left as it is") {
  CHECK(run_in_subprocess([](Fake&) {
          setenv("NCCL_ALGO", "tree", 1);
          auto options = options_of();
          options.algorithm = "ring";
          return error_of([&] { comm::join(nccl(), options); });
        }) ==
        "3: nccl: rank 0: joining 1 rank: unsupported: NCCL_ALGO=\"tree\" in the environment contradicts "
        "\"allreduce:ring\", which comm.algorithm and train.deterministic ask for: unset it");
  CHECK(run_in_subprocess([](Fake&) {
          setenv("NCCL_ALGO", "allreduce:ring", 1);
          auto options = options_of();
          options.algorithm = "ring";
          comm::join(nccl(), options);
          return variable("NCCL_ALGO");
        }) == "allreduce:ring");
}

TEST_CASE("the requested algorithm serves") {
  CHECK(run_in_subprocess([](Fake&) {
          auto options = options_of(2);
          options.algorithm = "tree";
          const auto backend = comm::join(nccl(), options);
          return backend->allreduce(on_stream(3, 5)).wait(1s).algorithm;
        }) == "tree");
}

TEST_CASE("options become NCCL's variables") {
  CHECK(run_in_subprocess([](Fake&) {
          auto options = options_of();
          options.options = {{"debug", "info"},       {"debug_subsys", "INIT"}, {"debug_file", "/tmp/nccl"},
                             {"interface", "eth0"},   {"ib_disable", "true"},   {"ib_hca", "mlx5"},
                             {"p2p_disable", "false"}};
          comm::join(nccl(), options);
          std::string text;
          for (const char* name : {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE", "NCCL_SOCKET_IFNAME",
                                   "NCCL_IB_DISABLE", "NCCL_IB_HCA", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"}) {
            text += variable(name) + " ";
          }
          return text;
        }) == "info INIT /tmp/nccl eth0 1 mlx5 0 - ");
  CHECK(run_in_subprocess([](Fake&) {
          auto options = options_of();
          options.options = {{"shm_disable", "true"}};
          comm::join(nccl(), options);
          return variable("NCCL_SHM_DISABLE");
        }) == "1");
}

TEST_CASE("the ranks of one network namespace stay on its loopback interface, unless another is named") {
  CHECK(run_in_subprocess([](Fake&) {
          comm::join(nccl(), options_of(2));
          return variable("NCCL_SOCKET_IFNAME");
        }) == "=lo");
  CHECK(run_in_subprocess([](Fake&) {
          setenv("NCCL_SOCKET_IFNAME", "eth1", 1);
          comm::join(nccl(), options_of(2));
          return variable("NCCL_SOCKET_IFNAME");
        }) == "eth1");
  CHECK(run_in_subprocess([](Fake&) {  // the other one has another network
          auto options = options_of(2);
          const auto echo = options.allgather;
          options.allgather = [echo, round = 0](std::string_view mine) mutable {
            auto all = echo(mine);
            if (++round == 3) all[1][0] = static_cast<char>(all[1][0] ^ 1);
            return all;
          };
          comm::join(nccl(), options);
          return variable("NCCL_SOCKET_IFNAME");
        }) == "-");
}

TEST_CASE("an option is refused if it is unknown, not true or false, or has changed in this process") {
  const std::string begin = "3: nccl: rank 0: joining 1 rank: ";
  auto options = options_of();
  options.options = {{"interfaces", "eth0"}};
  CHECK(error_of_joining([](Fake&) {}, options)
            .starts_with(begin + "invalid: comm.options.interfaces = \"eth0\": backend \"nccl\" has no such option"));
  options.options = {{"ib_disable", "1"}};
  CHECK(error_of_joining([](Fake&) {}, options) ==
        begin + "invalid: comm.options.ib_disable = \"1\": expected true or false");
  CHECK(run_in_subprocess([&](Fake&) {
          options.options = {{"debug", "warn"}};
          comm::join(nccl(), options);
          options.options = {{"debug", "info"}};
          return error_of([&] { comm::join(nccl(), options); });
        }) == begin +
                  "unsupported: comm.options.debug: NCCL reads NCCL_DEBUG once per process, and it has been \"warn\" "
                  "for an earlier communicator; \"info\" needs a new process");
}

}  // namespace
}  // namespace ddprun::testing
