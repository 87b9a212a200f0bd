#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>

#include "app/commands.hpp"
#include "config/experiment.hpp"
#include "console/terminal.hpp"
#include "data/plugin_dataset.hpp"
#include "data/survey.hpp"
#include "tools/report/dataset_sheet.hpp"
#include "tools/report/picture.hpp"
#include "tools/report/png.hpp"

namespace ddprun::app {
namespace {

constexpr int64_t kLines = 5;  // samples that are shown where they are no pictures

// What to open, and how a fault of it is told.
struct Source {
  data::DataOptions data;
  std::function<std::string(const std::string& key, const std::string& reason)> fault;
};

Source source_of_config(const Arguments& arguments) {
  const config::Loaded loaded = config::load(arguments.config, arguments.overrides);
  const config::Experiment& experiment = loaded.experiment;
  return {{experiment.data.name,
           {experiment.data.root, experiment.data.options, static_cast<uint64_t>(experiment.experiment.seed)}},
          [sources = loaded.sources](const std::string& key, const std::string& reason) {
            return config::error(sources, "data." + key, reason);
          }};
}

Source source_of_arguments(const Arguments& arguments) {
  DatasetContext context{arguments.root, {}, static_cast<uint64_t>(arguments.seed)};
  std::map<std::string, std::string> places = {{"name", "data set \"" + arguments.data_set + "\""}};
  if (!arguments.root.empty()) places["root"] = "--root " + arguments.root;
  for (const std::string& option : arguments.options) {
    const std::size_t equals = option.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw Error(ExitCode::usage, "--option " + option + ": expected KEY=VALUE");
    }
    context.options[option.substr(0, equals)] = option.substr(equals + 1);
    places["options." + option.substr(0, equals)] = "--option " + option;
  }
  return {{arguments.data_set, context}, [places](const std::string& key, const std::string& reason) {
            const auto place = places.find(key);
            return (place == places.end() ? places.at("name") : place->second) + ": " + reason;
          }};
}

const Dataset& chosen_split(const Splits& splits, const Arguments& arguments) {
  const Dataset* split = arguments.split == "test" ? splits.test.get() : splits.train.get();
  if (split == nullptr) throw Error(ExitCode::usage, "--split test: the data set has no test split");
  if (arguments.sample >= 0 && arguments.sample < split->size()) return *split;
  throw Error(ExitCode::usage, "--sample " + std::to_string(arguments.sample) + ": " + arguments.split + " has " +
                                   std::to_string(split->size()) + " samples, numbered from 0");
}

std::string show_values(const Dataset& split, const Arguments& arguments) {
  if (!arguments.png.empty()) {
    throw Error(ExitCode::usage, "--png " + arguments.png +
                                     ": a sample is no picture, which has two dimensions, or three of which the first "
                                     "is 1 or 3");
  }
  std::vector<data::Sample> samples;
  for (int64_t i = arguments.sample; i < std::min(split.size(), arguments.sample + kLines); ++i) {
    samples.push_back(data::fetch_sample(split, i, arguments.epoch));
  }
  return "samples of " + arguments.split + ":\n" + report::sample_table(split, arguments.sample, samples);
}

std::string show_picture(const Dataset& split, const Arguments& arguments) {
  const data::Sample sample = data::fetch_sample(split, arguments.sample, arguments.epoch);
  const report::ShownRange range = report::shown_range(sample.input);
  const report::Picture picture = report::make_picture(split.input().shape, sample.input, range);
  const std::string title = "sample " + std::to_string(arguments.sample) + " of " + arguments.split + " in epoch " +
                            std::to_string(arguments.epoch) + ", " + report::range_text(range);
  const std::string target = report::target_text(split, sample) + '\n';
  if (arguments.png.empty()) {
    return title + ":\n" + report::draw(picture, console::terminal_of(STDOUT_FILENO)) + target;
  }
  report::write_png(arguments.png, picture, static_cast<std::size_t>(arguments.scale));
  return title + ", written to " + arguments.png + ":\n" + target;
}

std::string look(const data::DataOptions& options, const Arguments& arguments) {
  const auto plugin = data::find_dataset(options.name, plugin::Registry::standard(arguments.plugin_paths));
  const Splits splits = data::open_splits(*plugin.table, options.context);
  const Dataset& split = chosen_split(splits, arguments);
  const std::string shown =
      report::is_picture(split.input().shape) ? show_picture(split, arguments) : show_values(split, arguments);
  std::vector<report::SplitSheet> sheets = {{"train", splits.train.get(), data::survey(*splits.train)}};
  if (splits.test != nullptr) sheets.push_back({"test", splits.test.get(), data::survey(*splits.test)});
  return report::dataset_title(*plugin.table, plugin.path) + '\n' + report::dataset_sheet(sheets) + '\n' + shown;
}

}  // namespace

ExitCode data_info(const Arguments& arguments) {
  if (arguments.config.empty() == arguments.data_set.empty()) {
    throw Error(ExitCode::usage, "data info: expected either the name of a data set or --config FILE");
  }
  const Source source = arguments.config.empty() ? source_of_arguments(arguments) : source_of_config(arguments);
  try {
    std::fputs(look(source.data, arguments).c_str(), stdout);
  } catch (const data::DatasetError& error) {
    throw Error(error.code(), source.fault(error.key(), error.what()));
  }
  return ExitCode::ok;
}

}  // namespace ddprun::app
