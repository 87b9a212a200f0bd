// csv: a data set from the files train.csv and, if there is one, test.csv in the folder data.root. The target is a
// class or a number. The contract is in ddprun/plugin/dataset_plugin.hpp.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "ddprun/plugin/dataset_options.hpp"
#include "table.hpp"

namespace {

// All samples are in memory; fetch only copies, so many threads may call it.
class Rows final : public ddprun::Dataset {
 public:
  // labels: the values of the target that are classes, ascending; empty for regression.
  Rows(csv::Table table, const std::vector<double>& labels)
      : size_(static_cast<int64_t>(table.rows())), features_(std::move(table.features)) {
    input_ = {{static_cast<int64_t>(table.names.size()) - 1}, ddprun::ElementType::float32};
    if (labels.empty()) {
      target_ = {{1}, ddprun::ElementType::float32};
      numbers_.assign(table.targets.begin(), table.targets.end());
      return;
    }
    target_ = {{}, ddprun::ElementType::int64};
    for (const double label : labels) names_.push_back(std::to_string(static_cast<int64_t>(label)));
    for (std::size_t row = 0; row < table.rows(); ++row) {
      const auto at = std::lower_bound(labels.begin(), labels.end(), table.targets[row]);
      if (at == labels.end() || *at != table.targets[row]) {
        csv::refuse(table.file, table.target_places[row], "a class that train.csv does not have");
      }
      classes_.push_back(at - labels.begin());
    }
  }

  int64_t size() const override { return size_; }
  const ddprun::Field& input() const override { return input_; }
  const ddprun::Field& target() const override { return target_; }
  const std::vector<std::string>& classes() const override { return names_; }

  void fetch(std::span<const int64_t> indices, int64_t /*epoch*/, void* inputs, void* targets) const override {
    ddprun::check_indices(indices, size_);
    auto* input = static_cast<std::byte*>(inputs);
    auto* target = static_cast<std::byte*>(targets);
    for (const int64_t index : indices) {
      const auto row = static_cast<std::size_t>(index);
      std::memcpy(input, features_.data() + row * input_.elements(), input_.bytes());
      const void* const from = names_.empty() ? static_cast<const void*>(&numbers_[row]) : &classes_[row];
      std::memcpy(target, from, target_.bytes());
      input += input_.bytes();
      target += target_.bytes();
    }
  }

 private:
  int64_t size_;
  std::vector<float> features_;   // row after row
  std::vector<int64_t> classes_;  // of each row, or
  std::vector<float> numbers_;    // the number of each row
  ddprun::Field input_, target_;
  std::vector<std::string> names_;
};

constexpr ddprun_option_spec kOptions[] = {
    ddprun::choice_option("task", "classification", "classification|regression", "whether the target is a class"),
    ddprun::text_option("target", nullptr, "the name of the target's column; the last one, if not given"),
    ddprun::choice_option("delimiter", ",", ",|;|tab", "what separates the columns"),
};

// The distinct targets, ascending.
std::vector<double> labels_of(const csv::Table& table) {
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const double value = table.targets[row];
    if (value == std::trunc(value) && std::abs(value) < 1e15) continue;
    csv::refuse(table.file, table.target_places[row],
                "a class is a whole number; for other targets set data.options.task = \"regression\"");
  }
  const std::set<double> distinct(table.targets.begin(), table.targets.end());
  return {distinct.begin(), distinct.end()};
}

ddprun::Splits open(const ddprun::DatasetContext& context) {
  const ddprun::DatasetOptions options("csv", context, kOptions);
  if (context.root.empty()) throw ddprun::InvalidDataset("root", "expected the folder with train.csv");
  const std::string delimiter = options.text("delimiter");
  const auto read = [&](const std::filesystem::path& path) {
    return csv::read_table(path.string(), delimiter == "tab" ? '\t' : delimiter[0], options.text("target"));
  };
  const std::filesystem::path folder(context.root), test = folder / "test.csv";
  csv::Table table = read(folder / "train.csv");
  const auto names = table.names;
  const auto labels = options.text("task") == "classification" ? labels_of(table) : std::vector<double>();
  ddprun::Splits splits{std::make_unique<Rows>(std::move(table), labels), nullptr};
  if (!std::filesystem::exists(test)) return splits;
  table = read(test);
  if (table.names != names) csv::refuse(table.file, {}, "expected the same columns as in train.csv");
  splits.test = std::make_unique<Rows>(std::move(table), labels);
  return splits;
}

}  // namespace

DDPRUN_DATASET_PLUGIN(open, "csv", "0.1.0", "tables of numbers, train.csv and test.csv in data.root", kOptions);
