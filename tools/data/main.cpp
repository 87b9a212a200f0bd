// ddprun-data: downloads and shows data sets.
#include "cli/console/command_line.hpp"
#include "cli/console/program.hpp"
#include "ddprun/plugin/words.hpp"
#include "tools/data/fetch.hpp"
#include "tools/data/info.hpp"

namespace ddprun {
namespace {

struct FetchRequest {
  std::string data_set;
  fetch::FetchOptions options;
};

CLI::App* declare_fetch(CLI::App& data, FetchRequest& request) {
  auto* to = data.add_subcommand("fetch", "Download a data set and verify it. An earlier download is resumed.");
  to->add_option("dataset", request.data_set, "The data set: " + quoted_list(fetch::data_set_names()) + ".")
      ->type_name("NAME");
  to->add_option("--root", request.options.root,
                 "The folder for its files. The default is data/NAME in the current folder.")
      ->type_name("DIR");
  to->add_option("--mirror", request.options.mirror, "The base URL that replaces the official source.")
      ->type_name("URL");
  return to;
}

ExitCode run_fetch(const FetchRequest& request) {
  if (request.data_set.empty()) {
    throw Error(ExitCode::usage,
                "data fetch: expected the name of a data set: " + quoted_list(fetch::data_set_names()));
  }
  std::printf("%s\n", fetch::fetch(fetch::find_data_set(request.data_set), request.options).c_str());
  return ExitCode::ok;
}

// The data set, by its name or from a config; then which sample to show, and how.
CLI::App* declare_info(CLI::App& data, info::Request& request, std::vector<std::string>& options) {
  auto* to = data.add_subcommand("info", "Show shapes, value ranges, classes and a sample of a data set.");
  to->add_option("dataset", request.data_set, "The name of a data set, or the name or path of a plugin.")
      ->type_name("NAME");
  auto* config = to->add_option("--config", request.config, "Use the data keys and the seed of this experiment.");
  config->type_name("FILE");
  console::add_overrides(*to, request.overrides)->needs(config);
  to->add_option("--root", request.root, "The folder of its files.")->type_name("DIR")->excludes(config);
  const std::string about_options = "An option of the data set, such as samples=100. May be repeated.";
  console::add_key_values(*to, "--option", options, "KEY=VALUE", about_options)->excludes(config);
  to->add_option("--seed", request.seed, "The seed of its random parts.")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->excludes(config);
  console::add_plugin_path(*to, request.plugin_paths);
  to->add_option("--sample", request.sample, "The number of the sample to show, from 0.")->capture_default_str();
  to->add_option("--split", request.split, "The split of the sample.")
      ->check(CLI::IsMember({"train", "test"}))
      ->capture_default_str();
  to->add_option("--epoch", request.epoch, "Show the sample as training sees it in this epoch, from 0.")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  return to;
}

ExitCode run_program(int argc, char** argv) {
  const auto cli = console::tool_command("data");
  cli->require_subcommand(0, 1);
  FetchRequest fetched;
  info::Request shown;
  std::vector<std::string> options;
  const CLI::App* fetch = declare_fetch(*cli, fetched);
  const CLI::App* info = declare_info(*cli, shown, options);
  if (const auto end = console::parse(*cli, argc, argv)) return *end;
  if (fetch->parsed()) return run_fetch(fetched);
  if (!info->parsed()) return console::show_help(*cli);
  shown.options = console::key_values("--option", options);
  std::fputs(info::show(shown).c_str(), stdout);
  return ExitCode::ok;
}

}  // namespace
}  // namespace ddprun

int main(int argc, char** argv) {
  return ddprun::console::run_program([&] { return ddprun::run_program(argc, argv); });
}
