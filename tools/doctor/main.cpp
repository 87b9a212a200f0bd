// ddprun-doctor: examines this host, and says what to do about what it finds.
#include <nlohmann/json.hpp>

#include "console/command_line.hpp"
#include "console/program.hpp"
#include "tools/doctor/collect.hpp"
#include "tools/doctor/judge.hpp"
#include "tools/doctor/output.hpp"

namespace ddprun::doctor {
namespace {

constexpr const char* kExample =
    "Examples: ddprun doctor\n"
    "          ddprun doctor --json -\n"
    "Exit codes: 0 no error was found; 1 a finding is an error. See docs/clusters.md.";

ExitCode run_program(int argc, char** argv) {
  std::string json;
  std::vector<std::string> plugin_paths;
  CLI::App cli("Examine this host: plugins, cores, memory, GPUs, network, limits", "ddprun doctor");
  cli.footer(kExample);
  cli.add_option("--json", json, "Write the findings to this file too; - for stdout, instead of the table")
      ->type_name("FILE");
  console::add_plugin_path(cli, plugin_paths);
  if (const auto end = console::parse(cli, argc, argv)) return *end;

  const Facts facts = collect("", plugin::Registry::standard(plugin_paths));
  const auto findings = judge(facts);
  if (json != "-") std::fputs(table_text(findings).c_str(), stdout);
  if (!json.empty()) write_json(json, {{"host", facts.hostname}, {"findings", to_json(findings)}});
  return has_error(findings) ? ExitCode::failure : ExitCode::ok;
}

}  // namespace
}  // namespace ddprun::doctor

int main(int argc, char** argv) {
  return ddprun::console::run_program([&] { return ddprun::doctor::run_program(argc, argv); });
}
