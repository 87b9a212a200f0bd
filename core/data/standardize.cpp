#include "data/standardize.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/text.hpp"
#include "data/datasets.hpp"
#include "data/loader.hpp"

namespace ddprun::data {
namespace {

// The layout of an input: `features` blocks of `elements` contiguous values each.
struct Layout {
  std::size_t features = 0;
  std::size_t elements = 0;  // per feature in one sample
};

Layout layout_of(const Field& input) {
  const bool picture = input.shape.size() == 3;
  const std::size_t features = picture ? static_cast<std::size_t>(input.shape[0]) : input.elements();
  return {features, features == 0 ? 0 : input.elements() / features};
}

// Count, mean and sum of squared deviations of one feature, and its range.
struct Moments {
  double count = 0;
  double mean = 0;
  double squares = 0;
  float least = std::numeric_limits<float>::infinity();
  float most = -std::numeric_limits<float>::infinity();

  void add(const float* values, std::size_t size) {
    const auto n = static_cast<double>(size);
    double sum = 0, squares_here = 0;
    for (std::size_t i = 0; i < size; ++i) {
      sum += static_cast<double>(values[i]);
      least = std::min(least, values[i]);
      most = std::max(most, values[i]);
    }
    const double mean_here = sum / n;
    for (std::size_t i = 0; i < size; ++i) {
      const double apart = static_cast<double>(values[i]) - mean_here;
      squares_here += apart * apart;
    }
    const double apart = mean_here - mean, all = count + n;
    mean += apart * n / all;
    squares += squares_here + apart * apart * count * n / all;
    count = all;
  }
};

class StandardizedDataset final : public Dataset {
 public:
  StandardizedDataset(std::unique_ptr<Dataset> dataset, const Standardization& by)
      : dataset_(std::move(dataset)), layout_(layout_of(dataset_->input())) {
    for (std::size_t i = 0; i < by.mean.size(); ++i) {
      mean_.push_back(static_cast<float>(by.mean[i]));
      scale_.push_back(static_cast<float>(1 / by.deviation[i]));
    }
  }

  int64_t size() const override { return dataset_->size(); }
  const Field& input() const override { return dataset_->input(); }
  const Field& target() const override { return dataset_->target(); }
  const std::vector<std::string>& classes() const override { return dataset_->classes(); }

  void fetch(std::span<const int64_t> indices, int64_t epoch, void* inputs, void* targets) const override {
    dataset_->fetch(indices, epoch, inputs, targets);
    auto* value = static_cast<float*>(inputs);
    for (std::size_t sample = 0; sample < indices.size(); ++sample) {
      for (std::size_t feature = 0; feature < layout_.features; ++feature) {
        const float mean = mean_[feature], scale = scale_[feature];
        for (std::size_t i = 0; i < layout_.elements; ++i, ++value) *value = (*value - mean) * scale;
      }
    }
  }

 private:
  const std::unique_ptr<Dataset> dataset_;
  const Layout layout_;
  std::vector<float> mean_;
  std::vector<float> scale_;
};

std::string comma_separated(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ",") + exact_text(value);
  return text;
}

// Parses finite numbers separated by commas; false for anything else.
bool read_numbers(std::string_view text, std::vector<double>& values) {
  while (true) {
    const std::size_t comma = text.find(',');
    const auto value = parse_number<double>(text.substr(0, comma));
    if (!value || !std::isfinite(*value)) return false;
    values.push_back(*value);
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

// Calls visit(input) for each sample of `subset` (empty: of the whole data set) in order, on this thread, as epoch 0
// gives them; `workers` threads prefetch.
void for_each_input(const Dataset& dataset, std::span<const int64_t> subset, int workers,
                    const std::function<void(const float*)>& visit) {
  constexpr int64_t batch_size = 64;
  if (dataset.input().type != ElementType::float32) throw DatasetError("standardize", "needs inputs of type float32");
  const std::size_t elements = dataset.input().elements();
  const auto loader = make_loader(dataset, {workers, 2});
  std::vector<int64_t> indices(subset.begin(), subset.end());
  if (subset.empty()) {
    indices.resize(static_cast<std::size_t>(dataset.size()));
    std::iota(indices.begin(), indices.end(), int64_t{0});
  }
  loader->start(cut_batches(indices, batch_size, false), 0);
  auto index = indices.begin();
  for (Batch batch; loader->next(batch);) {
    const auto* input = static_cast<const float*>(batch.inputs);
    for (int64_t i = 0; i < batch.size; ++i, ++index, input += elements) {
      if (!std::all_of(input, input + elements, [](float value) { return std::isfinite(value); })) {
        throw DatasetError("standardize",
                           "sample " + std::to_string(*index) + " holds a value that is NaN or infinite");
      }
      visit(input);
    }
  }
}

}  // namespace

Standardization fit_standardization(const Dataset& dataset, int workers, std::span<const int64_t> subset) {
  const Layout layout = layout_of(dataset.input());
  std::vector<Moments> moments(layout.features);
  for_each_input(dataset, subset, workers, [&](const float* input) {
    for (std::size_t feature = 0; feature < layout.features; ++feature) {
      moments[feature].add(input + feature * layout.elements, layout.elements);
    }
  });
  Standardization by;
  for (const Moments& feature : moments) {
    // The deviation of a constant feature may be a rounding error, by which we must not divide.
    const bool constant = feature.least == feature.most;
    by.mean.push_back(constant ? static_cast<double>(feature.least) : feature.mean);
    by.deviation.push_back(constant ? 1 : std::sqrt(feature.squares / feature.count));
  }
  return by;
}

std::unique_ptr<Dataset> standardized(std::unique_ptr<Dataset> dataset, Standardization by) {
  const std::size_t features = layout_of(dataset->input()).features;
  if (by.mean.size() != features || by.deviation.size() != features || dataset->input().type != ElementType::float32) {
    throw DatasetError("standardize", "made for inputs of " + std::to_string(by.mean.size()) +
                                          " features, and these have " + std::to_string(features));
  }
  return std::make_unique<StandardizedDataset>(std::move(dataset), by);
}

std::string to_text(const Standardization& by) {
  return comma_separated(by.mean) + ";" + comma_separated(by.deviation);
}

Standardization read_standardization(const std::string& text) {
  Standardization by;
  const std::size_t middle = text.find(';');
  const std::string_view all = text;
  bool sound = middle != std::string::npos && read_numbers(all.substr(0, middle), by.mean) &&
               read_numbers(all.substr(middle + 1), by.deviation) && by.mean.size() == by.deviation.size();
  for (const double deviation : by.deviation) sound = sound && deviation > 0;
  if (!sound) throw Error(ExitCode::usage, "its standardization is no list of means and deviations");
  return by;
}

}  // namespace ddprun::data
