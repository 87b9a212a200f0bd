#include "tools/data/info.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <functional>

#include "cli/config/experiment.hpp"
#include "cli/console/table.hpp"
#include "data/datasets.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun::info {
namespace {

constexpr int64_t kLines = 5;  // samples to show

// The data set to open, and how to report its errors.
struct Source {
  data::DataOptions data;
  std::function<std::string(const std::string& key, const std::string& reason)> error;
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
  DatasetContext context{request.root, request.options, static_cast<uint64_t>(request.seed)};
  std::map<std::string, std::string> places = {{"name", "data set \"" + request.data_set + "\""}};
  if (!request.root.empty()) places["root"] = "--root " + request.root;
  for (const auto& [key, value] : request.options) places["options." + key] = "--option " + key + "=" + value;
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
  std::vector<data::Sample> samples;
  for (int64_t i = request.sample; i < std::min(split.size(), request.sample + kLines); ++i) {
    samples.push_back(data::fetch_sample(split, i, request.epoch));
  }
  return "samples of " + request.split + ":\n" + sample_table(split, request.sample, samples);
}

std::string describe(const data::DataOptions& options, const Request& request) {
  const auto plugin = data::find_dataset(options.name, plugin::Registry::standard(request.plugin_paths));
  const Splits splits = data::open_splits(*plugin.table, options.context);
  const Dataset& split = chosen_split(splits, request);
  const std::string shown = show_values(split, request);
  std::vector<SplitSheet> sheets = {{"train", splits.train.get(), data::survey(*splits.train)}};
  if (splits.test != nullptr) sheets.push_back({"test", splits.test.get(), data::survey(*splits.test)});
  return dataset_title(*plugin.table, plugin.path) + '\n' + dataset_sheet(sheets) + '\n' + shown;
}

constexpr std::size_t kMostClasses = 50;  // rows of the table
constexpr std::size_t kMostChannels = 8;
constexpr std::size_t kMostValues = 8;  // of one sample

std::string field_text(const Field& field) {
  std::string text = field.type == ElementType::float32 ? "float32" : "int64";
  if (field.shape.empty()) return text;
  return text + ' ' + fmt::format("{}", fmt::join(field.shape, " x "));
}

std::string number(double value) {
  return fmt::format("{:.5g}", value);
}

// `one` and `several`: the word for what is left out.
std::string left_out(std::size_t all, std::size_t shown, const char* one, const char* several) {
  if (all <= shown) return "";
  const auto count = static_cast<int64_t>(all - shown);
  return fmt::format("and {} more {}\n", console::human_count(count), count == 1 ? one : several);
}

std::string split_table(const std::vector<SplitSheet>& splits) {
  console::Table table({{"split"}, {"samples", console::Align::right}, {"input"}, {"target"}});
  for (const SplitSheet& split : splits) {
    table.row({split.name, console::human_count(split.dataset->size()), field_text(split.dataset->input()),
               field_text(split.dataset->target())});
  }
  return table.text();
}

// "all", or "1,000 spread over all".
std::string seen(int64_t samples, const Dataset& dataset) {
  return samples == dataset.size() ? "all" : console::human_count(samples) + " spread over all";
}

// Of the inputs by channel, or of the targets.
std::string spread_table(const std::vector<SplitSheet>& splits, bool of_inputs) {
  const std::size_t channels = of_inputs ? splits[0].survey.inputs.size() : 1;
  const std::size_t shown = std::min(channels, kMostChannels);
  console::Table table(console::Table::columns(
      {of_inputs ? "input of" : "target of", "samples", channels > 1 ? "channel" : "", "min", "max", "mean", "std", ""},
      {"channel", "min", "max", "mean", "std"}));
  for (const SplitSheet& split : splits) {
    const data::Survey& survey = split.survey;
    for (std::size_t channel = 0; channel < shown; ++channel) {
      const data::Spread& spread = of_inputs ? survey.inputs[channel] : survey.targets;
      table.row({split.name, seen(of_inputs ? survey.measured : survey.counted, *split.dataset),
                 channels > 1 ? std::to_string(channel) : "", number(spread.low), number(spread.high),
                 number(spread.mean), number(spread.deviation),
                 spread.others == 0 ? "" : console::human_count(spread.others) + " not finite, left out"});
    }
  }
  return table.text() + left_out(channels, shown, "channel", "channels");
}

std::string class_table(const std::vector<SplitSheet>& splits) {
  const std::vector<std::string>& names = splits[0].dataset->classes();
  const std::size_t shown = std::min(names.size(), kMostClasses);
  std::vector<console::Table::Column> columns = {{"class", console::Align::right}, {"name"}};
  for (const SplitSheet& split : splits) {
    const std::string samples = seen(split.survey.counted, *split.dataset);
    columns.push_back({split.name + (samples == "all" ? "" : " (" + samples + ")"), console::Align::right});
  }
  console::Table table(columns);
  for (std::size_t i = 0; i < shown; ++i) {
    std::vector<std::string> cells = {std::to_string(i), printable(names[i])};
    for (const SplitSheet& split : splits) cells.push_back(console::human_count(split.survey.classes[i]));
    table.row(cells);
  }
  return table.text() + left_out(names.size(), shown, "class", "classes");
}

std::string values_text(const std::vector<double>& values) {
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(values.size(), kMostValues); ++i) shown.push_back(number(values[i]));
  if (values.size() > kMostValues) shown.emplace_back("...");
  return fmt::format("{}", fmt::join(shown, " "));
}

}  // namespace

std::string show(const Request& request) {
  if (request.config.empty() == request.data_set.empty()) {
    throw Error(ExitCode::usage, "data info: expected either the name of a data set or --config FILE");
  }
  const Source source = request.config.empty() ? source_of_request(request) : source_of_config(request);
  try {
    return describe(source.data, request);
  } catch (const data::DatasetError& error) {
    throw Error(error.code(), source.error(error.key(), error.what()));
  }
}

std::string dataset_title(const ddprun_dataset_plugin& table, const std::string& path) {
  const std::string origin =
      path.empty() ? "comes with ddprun" : fmt::format("plugin {} of version {}", path, table.version);
  return fmt::format("{}: {} ({})\n", table.name, table.summary, origin);
}

std::string dataset_sheet(const std::vector<SplitSheet>& splits) {
  const bool classes = data::has_classes(*splits[0].dataset);
  return split_table(splits) + '\n' + spread_table(splits, true) + '\n' +
         (classes ? class_table(splits) : spread_table(splits, false));
}

std::string target_text(const Dataset& dataset, const data::Sample& sample) {
  if (!data::has_classes(dataset)) return values_text(sample.target);
  const auto index = static_cast<std::size_t>(std::max(0.0, sample.target[0]));
  const std::string label = fmt::format("{:.0f}", sample.target[0]);
  const std::string name = index < dataset.classes().size() ? printable(dataset.classes()[index]) : label;
  return "class " + label + (name == label ? "" : " \"" + name + '"');
}

std::string sample_table(const Dataset& dataset, int64_t first, const std::vector<data::Sample>& samples) {
  console::Table table({{"sample", console::Align::right}, {"input"}, {"target"}});
  for (const data::Sample& sample : samples) {
    table.row({std::to_string(first++), values_text(sample.input), target_text(dataset, sample)});
  }
  return table.text();
}

}  // namespace ddprun::info
