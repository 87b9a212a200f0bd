#include "tools/data/dataset_sheet.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/console/table.hpp"
#include "cli/console/units.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun::info {
namespace {

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

std::vector<console::Table::Column> spread_columns(const char* first, const char* second) {
  return {{first},
          {"samples"},
          {second, console::Align::right},
          {"min", console::Align::right},
          {"max", console::Align::right},
          {"mean", console::Align::right},
          {"std", console::Align::right},
          {""}};
}

std::vector<std::string> spread_cells(const std::string& split, const std::string& samples, const std::string& part,
                                      const data::Spread& spread) {
  const std::string others = spread.others == 0 ? "" : console::human_count(spread.others) + " not finite, left out";
  return {split, samples, part, number(spread.low), number(spread.high), number(spread.mean), number(spread.deviation),
          others};
}

std::string input_table(const std::vector<SplitSheet>& splits) {
  const std::size_t channels = splits[0].survey.inputs.size();
  const std::size_t shown = std::min(channels, kMostChannels);
  console::Table table(spread_columns("input of", channels > 1 ? "channel" : ""));
  for (const SplitSheet& split : splits) {
    for (std::size_t channel = 0; channel < shown; ++channel) {
      table.row(spread_cells(split.name, seen(split.survey.measured, *split.dataset),
                             channels > 1 ? std::to_string(channel) : "", split.survey.inputs[channel]));
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

std::string target_table(const std::vector<SplitSheet>& splits) {
  console::Table table(spread_columns("target of", ""));
  for (const SplitSheet& split : splits) {
    table.row(spread_cells(split.name, seen(split.survey.counted, *split.dataset), "", split.survey.targets));
  }
  return table.text();
}

std::string values_text(const std::vector<double>& values) {
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(values.size(), kMostValues); ++i) shown.push_back(number(values[i]));
  if (values.size() > kMostValues) shown.emplace_back("...");
  return fmt::format("{}", fmt::join(shown, " "));
}

}  // namespace

std::string dataset_title(const ddprun_dataset_plugin& table, const std::string& path) {
  const std::string origin =
      path.empty() ? "comes with ddprun" : fmt::format("plugin {} of version {}", path, table.version);
  return fmt::format("{}: {} ({})\n", table.name, table.summary, origin);
}

std::string dataset_sheet(const std::vector<SplitSheet>& splits) {
  const bool classes = data::has_classes(*splits[0].dataset);
  return split_table(splits) + '\n' + input_table(splits) + '\n' +
         (classes ? class_table(splits) : target_table(splits));
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
