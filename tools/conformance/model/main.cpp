// ddprun-conformance-model: tests a model plugin. `ddprun conformance --model NAME` starts it. It is a program of its
// own because it needs LibTorch.
#include "cli/console/command_line.hpp"
#include "cli/console/program.hpp"
#include "data/datasets.hpp"
#include "plugin/registry.hpp"
#include "tools/conformance/checks.hpp"

namespace ddprun::conformance {
namespace {

ExitCode run_program(int argc, char** argv) {
  const auto cli = console::make_command("Test a model against the contract of ddprun/plugin/model_plugin.hpp.",
                                         "ddprun conformance");
  cli->footer("Exit codes: 0 all passed, 2 usage, 3 plugin not found or refused, 6 a check failed.");
  ModelSettings settings;
  CheckOptions checks;
  std::string name, dataset = "synthetic";
  std::vector<std::string> plugin_path, options, data_options;
  cli->add_option("--model", name, "The model to test: the name or path of a plugin.")->required();
  console::add_plugin_path(*cli, plugin_path);
  console::add_key_values(*cli, "--option", options, "KEY=VALUE",
                          "An option of the model, as in model.options. May be repeated.");
  cli->add_option("--dataset", dataset, "The data set that gives shape, classes and samples.")->capture_default_str();
  cli->add_option("--root", settings.data.root, "The folder of its files.")->type_name("DIR");
  console::add_key_values(*cli, "--data-option", data_options, "KEY=VALUE",
                          "An option of the data set, for example shape=1x28x28 or classes=10. May be repeated.");
  add_check_options(*cli, checks);
  if (const auto end = console::parse(*cli, argc, argv)) return *end;
  settings.options = console::key_values("--option", options);
  settings.data.options = console::key_values("--data-option", data_options);
  const auto registry = plugin::Registry::standard(plugin_path);
  settings.data_table = data::find_dataset(dataset, registry).table;
  settings.plugin = find_model(name, registry);
  const Tested tested{settings.plugin.table->name, settings.plugin.table->version, settings.plugin.path, std::nullopt};
  return run_checks(model_suite(settings), tested, checks);
}

}  // namespace
}  // namespace ddprun::conformance

int main(int argc, char** argv) {
  return ddprun::console::run_program([&] { return ddprun::conformance::run_program(argc, argv); });
}
