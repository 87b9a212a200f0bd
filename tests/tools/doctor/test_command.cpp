// The program as a user runs it.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "support/paths.hpp"
#include "support/process.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"
#include "tree.hpp"

using namespace ddprun::testing;

namespace {

ProcessResult doctor(std::vector<std::string> arguments, const std::vector<std::string>& variables = {}) {
  arguments.insert(arguments.begin(), DOCTOR_PROGRAM);
  return Process(arguments, variables).wait();
}

}  // namespace

TEST_CASE("every group is in the table and in the JSON") {
  const Tree tree;
  const std::string file = tree.root() + "/doctor.json";
  const auto result = doctor({"--json", file});
  CHECK(result.err.empty());
  const auto json = nlohmann::json::parse(read_file(file));
  for (const char* group :
       {"plugins", "cores", "memory", "NUMA", "GPUs", "network", "limits", "variables", "launcher"}) {
    CAPTURE(group);
    CHECK(contains(result.out, std::string("\n") + group));
    bool found = false;
    for (const auto& one : json.at("findings")) found = found || one.at("group") == group;
    CHECK(found);
  }
  CHECK(nlohmann::json::parse(doctor({"--json", "-"}).out).at("findings").size() == json.at("findings").size());
}

TEST_CASE("the exit code is 1 if and only if there is an error") {
  const Tree empty;
  const auto fine = doctor({"--json", "-"}, {"DDPRUN_PLUGIN_PATH=" + empty.root(), "MASTER_PORT=29500"});
  const auto report = nlohmann::json::parse(fine.out);
  bool error = false;
  for (const auto& one : report.at("findings")) error = error || one.at("state") == "error";
  CHECK(fine.code == (error ? 1 : 0));
  const auto wrong = doctor({}, {"MASTER_PORT=a port"});
  CHECK(wrong.code == 1);
  CHECK(contains(wrong.out, "set it to a whole number from 1 to 65535"));
}

TEST_CASE("wrong arguments and a file that cannot be written are one line each") {
  CHECK(doctor({"--jsno", "x"}).err ==
        "ddprun: unknown argument \"--jsno\" (did you mean \"--json\"?); see ddprun doctor --help\n");
  const auto unwritable = doctor({"--json", "/nowhere/file"});
  CHECK(unwritable.code == 1);
  CHECK(contains(unwritable.err, "/nowhere/file"));
}

TEST_CASE("--peers outside a job, and its options without it, are one line each") {
  CHECK(contains(doctor({"--peers"}).err,
                 "--peers tests the network between the hosts of a job: give --nnodes on each host, or"));
  CHECK(doctor({"--peers"}).code == 2);
  CHECK(doctor({"--port", "1"}).err == "ddprun: --port requires --peers; see ddprun doctor --help\n");
  const auto other = doctor({"--peers"}, {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=192.0.2.1", "MASTER_PORT=1"});
  CHECK(contains(other.err, "the job has no secret: set DDPRUN_SECRET"));
  CHECK(other.code == 4);
}

TEST_CASE("GPUs with their memory, without NVML, and hidden by CUDA_VISIBLE_DEVICES") {
  const std::vector<std::string> two = {"LD_LIBRARY_PATH=" + build_dir() + "/tests/fakes/cuda", "DDPRUN_FAKE_GPUS=2"};
  const auto with = [&](const std::string& variable) {
    auto variables = two;
    if (!variable.empty()) variables.push_back(variable);
    const auto result = doctor({}, variables);
    CHECK(result.err.empty());
    return result.out;
  };
  const std::string found = with("");
  CHECK(contains(found, "warning  Fake GPU 0, 8.00 GiB, 0000:01:00.0; 1.00 GiB in use"));
  CHECK(contains(found, "ok       Fake GPU 1, 16.0 GiB"));
  CHECK(contains(found, "for CUDA 13.0"));
  CHECK(contains(with("DDPRUN_FAKE_NVML=18"), "NVML does not report its load"));
  CHECK(contains(with("CUDA_VISIBLE_DEVICES="), "CUDA_VISIBLE_DEVICES hides all GPUs"));
}
