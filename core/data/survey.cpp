#include "data/survey.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/error.hpp"

namespace ddprun::data {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kThousand = 1000;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;  // fetched at a time, unless one sample is larger

// Sums of distances to the first value: no digits are lost where the values lie far from 0.
class Measure {
 public:
  template <class T>
  void add(const T* values, std::size_t count) {
    for (const T* value = values; value != values + count; ++value) add_one(static_cast<double>(*value));
  }

  Spread spread() const {
    if (count_ == 0) return {NAN, NAN, NAN, NAN, others_};
    const auto n = static_cast<double>(count_);
    const double offset = sum_ / n;
    return {low_, high_, origin_ + offset, std::sqrt(std::max(0.0, squares_ / n - offset * offset)), others_};
  }

 private:
  void add_one(double value) {
    if (!std::isfinite(value)) {
      ++others_;
      return;
    }
    if (count_++ == 0) low_ = high_ = origin_ = value;
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
    const double distance = value - origin_;
    sum_ += distance;
    squares_ += distance * distance;
  }

  int64_t count_ = 0;
  int64_t others_ = 0;
  double origin_ = 0, low_ = 0, high_ = 0, sum_ = 0, squares_ = 0;
};

// Values of a field's type.
class Values {
 public:
  explicit Values(const Field& field) : field_(field) {}

  void resize(std::size_t samples) { memory_.resize(samples * field_.bytes()); }
  void* data() { return memory_.data(); }

  void measure(Measure& measure, std::size_t first, std::size_t count) const {
    if (field_.type == ElementType::float32) {
      measure.add(values<float>() + first, count);
    } else {
      measure.add(values<int64_t>() + first, count);
    }
  }
  std::vector<double> numbers() const {
    const std::size_t count = memory_.size() / size_of(field_.type);
    if (field_.type == ElementType::float32) return {values<float>(), values<float>() + count};
    return {values<int64_t>(), values<int64_t>() + count};
  }
  // Of a field of that type.
  template <class T>
  const T* values() const {
    return reinterpret_cast<const T*>(memory_.data());
  }

 private:
  const Field& field_;
  std::vector<std::byte> memory_;
};

class Surveyor {
 public:
  explicit Surveyor(const Dataset& dataset)
      : dataset_(dataset),
        channels_(dataset.input().shape.size() == 3 ? static_cast<std::size_t>(dataset.input().shape[0]) : 1),
        inputs_(dataset.input()),
        targets_(dataset.target()),
        input_measures_(channels_) {
    if (has_classes(dataset)) classes_.resize(dataset.classes().size());
  }

  // Counts the samples up to `end`, and measures their inputs if that is wanted.
  void go_to(int64_t end, bool measured) {
    const auto piece = static_cast<int64_t>(std::max<std::size_t>(1, kPieceBytes / dataset_.input().bytes()));
    while (done_ < end) {
      const int64_t count = std::min(piece, end - done_);
      fetch(count);
      if (measured) measure_inputs(static_cast<std::size_t>(count));
      count_targets(static_cast<std::size_t>(count));
      done_ += count;
    }
  }

  Survey result(int64_t measured) const {
    Survey survey{measured, {}, done_, classes_, target_measure_.spread()};
    for (const Measure& measure : input_measures_) survey.inputs.push_back(measure.spread());
    return survey;
  }

 private:
  void fetch(int64_t count) {
    std::vector<int64_t> indices(static_cast<std::size_t>(count));
    std::iota(indices.begin(), indices.end(), done_);
    inputs_.resize(indices.size());
    targets_.resize(indices.size());
    dataset_.fetch(indices, 0, inputs_.data(), targets_.data());
  }

  void measure_inputs(std::size_t samples) {
    const std::size_t plane = dataset_.input().elements() / channels_;
    for (std::size_t i = 0; i < samples * channels_; ++i) {
      inputs_.measure(input_measures_[i % channels_], i * plane, plane);
    }
  }

  void count_targets(std::size_t samples) {
    if (classes_.empty()) {
      targets_.measure(target_measure_, 0, samples * dataset_.target().elements());
      return;
    }
    for (std::size_t i = 0; i < samples; ++i) {
      const int64_t label = targets_.values<int64_t>()[i];
      if (label < 0 || label >= static_cast<int64_t>(classes_.size())) {
        throw Error(ExitCode::plugin, "sample " + std::to_string(done_ + static_cast<int64_t>(i)) + " is of class " +
                                          std::to_string(label) + " in a data set of " +
                                          std::to_string(classes_.size()) + " classes");
      }
      ++classes_[static_cast<std::size_t>(label)];
    }
  }

  const Dataset& dataset_;
  const std::size_t channels_;
  Values inputs_;
  Values targets_;
  std::vector<Measure> input_measures_;
  Measure target_measure_;
  std::vector<int64_t> classes_;
  int64_t done_ = 0;
};

// How many samples to count in all, when `measured` of them took `seconds`.
int64_t countable(int64_t size, int64_t measured, double seconds, double limit) {
  const double further = limit * static_cast<double>(measured) / std::max(seconds, 1e-9);
  if (further >= static_cast<double>(size - measured)) return size;
  const int64_t thousands = (measured + static_cast<int64_t>(further)) / kThousand * kThousand;
  return std::max(measured, thousands);
}

}  // namespace

Survey survey(const Dataset& dataset, const SurveyLimits& limits) {
  Surveyor surveyor(dataset);
  const int64_t measured = std::min(dataset.size(), limits.measured);
  const auto begin = Clock::now();
  surveyor.go_to(measured, true);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  surveyor.go_to(countable(dataset.size(), measured, seconds, limits.counting.count()), false);
  return surveyor.result(measured);
}

Sample fetch_sample(const Dataset& dataset, int64_t index, int64_t epoch) {
  Values input(dataset.input());
  Values target(dataset.target());
  input.resize(1);
  target.resize(1);
  dataset.fetch(std::vector<int64_t>{index}, epoch, input.data(), target.data());
  return {input.numbers(), target.numbers()};
}

bool has_classes(const Dataset& dataset) {
  return !dataset.classes().empty() && dataset.target().shape.empty() && dataset.target().type == ElementType::int64;
}

}  // namespace ddprun::data
