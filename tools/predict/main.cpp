// ddprun-predict: what more hosts would give.
#include <algorithm>

#include "base/file.hpp"
#include "cli/console/command_line.hpp"
#include "cli/console/program.hpp"
#include "tools/predict/forecast.hpp"

namespace ddprun::predict {
namespace {

constexpr int64_t kMostRanks = 4096;

struct Request {
  std::string run;
  std::vector<std::string> bench;
  int64_t ranks = kMostRanks;
  int64_t per_host = 1;
  std::vector<int64_t> hosts;
  double compute = 1;
  std::string json;
};

void declare(CLI::App& to, Request& request) {
  to.footer(
      "Examples: ddprun predict runs/mnist-20261125-101500 --bench 2-hosts.json --bench 3-hosts.json\n"
      "          ddprun predict RUN --bench 2-hosts.json --bench shm.json --ranks-per-host 8\n"
      "docs/predicting.md says how to record the run and the links, and what the prediction does not know.");
  to.add_option("run", request.run, "The folder of a run that traced a step (log.trace_steps).")
      ->required()
      ->type_name("RUN");
  console::add_repeated(to, "--bench", request.bench, "FILE",
                        "A file of `ddprun bench --json`, measured between hosts or on one host. May be repeated.")
      ->required();
  to.add_option("--ranks", request.ranks, "Predict for 1, 2, 4, ... hosts with up to N ranks in all.")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, kMostRanks));
  to.add_option("--ranks-per-host", request.per_host, "The number of ranks on each host.")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, kMostRanks));
  to.add_option("--hosts", request.hosts, "Predict for these numbers of hosts, instead of 1, 2, 4, ... hosts.")
      ->type_name("N,...")
      ->delimiter(',')
      ->check(CLI::Range(int64_t{1}, kMostRanks));
  to.add_option("--compute", request.compute,
                "Multiply the times of forward, backward and optimizer by this: 2 for hosts that are half as fast.")
      ->type_name("FACTOR")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  to.add_option("--json", request.json, "Also write the prediction as JSON to this file.")->type_name("FILE");
}

std::vector<int64_t> hosts_of(const Request& request) {
  std::vector<int64_t> hosts = request.hosts;
  const int64_t most = (request.hosts.empty() ? request.ranks : kMostRanks) / request.per_host;
  for (int64_t number = 1; request.hosts.empty() && number <= most; number *= 2) hosts.push_back(number);
  for (const int64_t number : hosts) {
    if (number <= most) continue;
    throw Error(ExitCode::usage, "--hosts " + std::to_string(number) + " with " + std::to_string(request.per_host) +
                                     " ranks each: expected at most " + std::to_string(kMostRanks) + " ranks in all");
  }
  std::ranges::sort(hosts);
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  return hosts;
}

ExitCode run_program(int argc, char** argv) {
  Request request;
  const auto cli = console::tool_command("predict");
  declare(*cli, request);
  if (const auto end = console::parse(*cli, argc, argv)) return *end;
  const std::vector<int64_t> hosts = hosts_of(request);
  Recording recording = read_recording(request.run);
  for (StepParts& step : recording.steps) step = step.times(request.compute);
  const Forecast made =
      forecast(std::move(recording), fit_links(read_bench(request.bench), request.per_host), hosts, request.per_host);
  std::fputs(text(made).c_str(), stdout);
  if (!request.json.empty()) replace_file(request.json, to_json(made, {argv, argv + argc}));
  return ExitCode::ok;
}

}  // namespace
}  // namespace ddprun::predict

int main(int argc, char** argv) {
  return ddprun::console::run_program([&] { return ddprun::predict::run_program(argc, argv); });
}
