#include "tools/data/info.hpp"

#include <unistd.h>

#include <algorithm>
#include <functional>

#include "cli/config/experiment.hpp"
#include "cli/console/terminal.hpp"
#include "data/plugin_dataset.hpp"
#include "ddprun/error.hpp"
#include "tools/data/dataset_sheet.hpp"
#include "tools/data/picture.hpp"
#include "tools/data/png.hpp"
#include "tools/data/survey.hpp"

namespace ddprun::info {
namespace {

constexpr int64_t kLines = 5;  // samples to show if they are no images

// The data set to open, and how to report its errors.
struct Source {
  data::DataOptions data;
  std::function<std::string(const std::string& key, const std::string& reason)> fault;
};

Source source_of_config(const Request& request) {
  const config::Loaded loaded = config::load(request.config, request.overrides);
  const config::Experiment& experiment = loaded.experiment;
  return {{experiment.data.name,
           {experiment.data.root, experiment.data.options, static_cast<uint64_t>(experiment.experiment.seed)}},
          [sources = loaded.sources](const std::string& key, const std::string& reason) {
            return config::error(sources, "data." + key, reason);
          }};
}

Source source_of_request(const Request& request) {
  DatasetContext context{request.root, {}, static_cast<uint64_t>(request.seed)};
  std::map<std::string, std::string> places = {{"name", "data set \"" + request.data_set + "\""}};
  if (!request.root.empty()) places["root"] = "--root " + request.root;
  for (const std::string& option : request.options) {
    const std::size_t equals = option.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw Error(ExitCode::usage, "--option " + option + ": expected KEY=VALUE");
    }
    context.options[option.substr(0, equals)] = option.substr(equals + 1);
    places["options." + option.substr(0, equals)] = "--option " + option;
  }
  return {{request.data_set, context}, [places](const std::string& key, const std::string& reason) {
            const auto place = places.find(key);
            return (place == places.end() ? places.at("name") : place->second) + ": " + reason;
          }};
}

const Dataset& chosen_split(const Splits& splits, const Request& request) {
  const Dataset* split = request.split == "test" ? splits.test.get() : splits.train.get();
  if (split == nullptr) throw Error(ExitCode::usage, "--split test: the data set has no test split");
  if (request.sample >= 0 && request.sample < split->size()) return *split;
  throw Error(ExitCode::usage, "--sample " + std::to_string(request.sample) + ": " + request.split + " has " +
                                   std::to_string(split->size()) +
                                   (split->size() == 1 ? " sample, number 0" : " samples, numbered from 0"));
}

std::string show_values(const Dataset& split, const Request& request) {
  if (!request.png.empty()) {
    throw Error(ExitCode::usage, "--png " + request.png +
                                     ": a sample is no image; an image has two dimensions, or three of which the first "
                                     "is 1 or 3");
  }
  std::vector<data::Sample> samples;
  for (int64_t i = request.sample; i < std::min(split.size(), request.sample + kLines); ++i) {
    samples.push_back(data::fetch_sample(split, i, request.epoch));
  }
  return "samples of " + request.split + ":\n" + sample_table(split, request.sample, samples);
}

std::string show_picture(const Dataset& split, const Request& request) {
  const data::Sample sample = data::fetch_sample(split, request.sample, request.epoch);
  const ShownRange range = shown_range(sample.input);
  const Picture picture = make_picture(split.input().shape, sample.input, range);
  const std::string title = "sample " + std::to_string(request.sample) + " of " + request.split + " in epoch " +
                            std::to_string(request.epoch) + ", " + range_text(range);
  const std::string target = target_text(split, sample) + '\n';
  if (request.png.empty()) {
    return title + ":\n" + draw(picture, console::terminal_of(STDOUT_FILENO)) + target;
  }
  write_png(request.png, picture, static_cast<std::size_t>(request.scale));
  return title + ", written to " + request.png + ":\n" + target;
}

std::string look(const data::DataOptions& options, const Request& request) {
  const auto plugin = data::find_dataset(options.name, plugin::Registry::standard(request.plugin_paths));
  const Splits splits = data::open_splits(*plugin.table, options.context);
  const Dataset& split = chosen_split(splits, request);
  const std::string shown =
      is_picture(split.input().shape) ? show_picture(split, request) : show_values(split, request);
  std::vector<SplitSheet> sheets = {{"train", splits.train.get(), data::survey(*splits.train)}};
  if (splits.test != nullptr) sheets.push_back({"test", splits.test.get(), data::survey(*splits.test)});
  return dataset_title(*plugin.table, plugin.path) + '\n' + dataset_sheet(sheets) + '\n' + shown;
}

}  // namespace

std::string show(const Request& request) {
  if (request.config.empty() == request.data_set.empty()) {
    throw Error(ExitCode::usage, "data info: expected either the name of a data set or --config FILE");
  }
  const Source source = request.config.empty() ? source_of_request(request) : source_of_config(request);
  try {
    return look(source.data, request);
  } catch (const data::DatasetError& error) {
    throw Error(error.code(), source.fault(error.key(), error.what()));
  }
}

}  // namespace ddprun::info
