// ddprun-doctor: examines this host, or the network between hosts, and says what to do about what it finds.
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/console/command_line.hpp"
#include "cli/console/program.hpp"
#include "tools/doctor/peers.hpp"
#include "tools/doctor/rules.hpp"
#include "tools/lib/job.hpp"

namespace ddprun::doctor {
namespace {

constexpr const char* kExample =
    "Examples: ddprun doctor\n"
    "          ddprun doctor --json -\n"
    "          ddprun doctor --peers --nnodes 2 --node-rank 0 --master-addr node0   (on node0; then 1 on node1)\n"
    "          srun -N 2 ddprun doctor --peers\n"
    "With --peers, one rank on each host is enough; rank 0 prints the table.\n"
    "Exit codes: 0 no error was found; 1 a finding is an error. See docs/clusters.md.";

struct Arguments {
  std::string json;
  std::vector<std::string> plugin_paths;
  bool peers = false;
  PeersOptions options;
  console::NodeOptions nodes;
  double timeout = 60;
};

void declare(CLI::App& to, Arguments& arguments) {
  PeersOptions& options = arguments.options;
  to.add_option("--json", arguments.json,
                "Also write the findings to this file as JSON. With -, write JSON to stdout instead of the table.")
      ->type_name("FILE");
  console::add_plugin_path(to, arguments.plugin_paths);
  auto* peers = to.add_flag("--peers", arguments.peers, "Test the network between the hosts of a job instead.");
  const auto add = [&](const char* name, auto& value, const char* type, const char* help) {
    return to.add_option(name, value, help)->type_name(type)->needs(peers);
  };
  add("--interface", options.interface, "NAME",
      "The interface of this host to test. The default is that of the route.");
  add("--port", options.port, "PORT", "The port on which every host listens. The default is any free one.")
      ->check(CLI::Range(1, 65535));
  console::add_node_options(to, arguments.nodes);
  console::add_insecure(to, arguments.nodes);
  add("--timeout", arguments.timeout, "SECONDS", "How long ranks wait for each other. The default is 60.")
      ->check(CLI::Range(1.0, 86400.0));
}

// `before`: what stands above the table. Returns whether there is no error.
bool report(const Arguments& arguments, const std::string& before, const std::vector<Finding>& findings,
            const nlohmann::ordered_json& json) {
  if (arguments.json != "-") std::fputs((before + table_text(findings)).c_str(), stdout);
  if (!arguments.json.empty()) write_json(arguments.json, json);
  return !has_error(findings);
}

ExitCode examine_host(const Arguments& arguments) {
  const Facts facts = collect("", plugin::Registry::standard(arguments.plugin_paths));
  const auto findings = judge(facts);
  const bool good = report(arguments, "", findings, {{"host", facts.hostname}, {"findings", to_json(findings)}});
  return good ? ExitCode::ok : ExitCode::failure;
}

ExitCode examine_peers(Arguments arguments) {
  PeersOptions& options = arguments.options;
  options.timeout = std::chrono::milliseconds(std::llround(arguments.timeout * 1000));
  const auto job = tools::Job::find(arguments.nodes);
  if (!job) {
    throw Error(ExitCode::usage,
                "--peers tests the network between the hosts of a job: give --nnodes on each host, or start it with a "
                "launcher, with at least one rank on each host");
  }
  // Nothing must be equal on all hosts: versions that differ are a finding.
  tools::Job::Terms terms;
  terms.insecure = arguments.nodes.insecure;
  terms.timeout = options.timeout;
  job->meet(terms);
  options.address = job->address();
  const auto test = [&] { return test_peers(job->store(), job->index(), job->count(), options); };
  if (!job->leads()) {
    test();
    return job->follow({});
  }
  return job->lead([&] {
    const PeersReport peers = test();
    const auto findings = judge_peers(peers);
    if (report(arguments, peers_text(peers) + "\n", findings, peers_json(peers, findings))) return ExitCode::ok;
    // An Error, because the other hosts do not show the table.
    throw Error(ExitCode::failure, "--peers: found an error; rank 0 has printed the table");
  });
}

ExitCode run_program(int argc, char** argv) {
  Arguments arguments;
  const auto cli = console::tool_command("doctor");
  cli->footer(kExample);
  declare(*cli, arguments);
  if (const auto end = console::parse(*cli, argc, argv)) return *end;
  return arguments.peers ? examine_peers(arguments) : examine_host(arguments);
}

}  // namespace
}  // namespace ddprun::doctor

int main(int argc, char** argv) {
  return ddprun::console::run_program([&] { return ddprun::doctor::run_program(argc, argv); });
}
