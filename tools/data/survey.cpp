#include "tools/data/survey.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ddprun::data {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;  // bytes fetched at a time, unless one sample is larger

// Sums of differences to the first value, which keeps precision if the values are far from 0.
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

// A buffer for values of a field's type.
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

// A permutation of 0 to `size` - 1 whose every prefix is spread evenly: steps of about the golden section of `size`
// (Weyl's sequence), made coprime to it.
class EvenOrder {
 public:
  explicit EvenOrder(int64_t size) : size_(size) {
    step_ = std::max<int64_t>(1, std::llround(static_cast<double>(size) * 0.6180339887498949));
    while (std::gcd(step_, size_) != 1) ++step_;
  }
  int64_t next() {
    const int64_t given = at_;
    at_ = (at_ + step_) % size_;
    return given;
  }

 private:
  const int64_t size_;
  int64_t step_ = 1;
  int64_t at_ = 0;
};

class Surveyor {
 public:
  explicit Surveyor(const Dataset& dataset)
      : dataset_(dataset),
        channels_(dataset.input().shape.size() == 3 ? static_cast<std::size_t>(dataset.input().shape[0]) : 1),
        inputs_(dataset.input()),
        targets_(dataset.target()),
        input_measures_(channels_),
        order_(dataset.size()) {
    if (has_classes(dataset)) classes_.resize(dataset.classes().size());
  }

  // Counts samples until there are `end` or the time is over, and optionally reads their inputs. Returns the number of
  // samples so far, at least one.
  int64_t go_to(int64_t end, std::chrono::duration<double> time, bool measured) {
    const auto piece = static_cast<int64_t>(std::max<std::size_t>(1, kPieceBytes / dataset_.input().bytes()));
    const auto begin = Clock::now();
    while (done_ < end && (done_ == 0 || Clock::now() - begin < time)) {
      const int64_t count = std::min(piece, end - done_);
      fetch(count);
      if (measured) measure_inputs(static_cast<std::size_t>(count));
      count_targets(static_cast<std::size_t>(count));
      done_ += count;
    }
    return done_;
  }

  Survey result(int64_t measured) const {
    Survey survey{measured, {}, done_, classes_, target_measure_.spread()};
    for (const Measure& measure : input_measures_) survey.inputs.push_back(measure.spread());
    return survey;
  }

 private:
  void fetch(int64_t count) {
    std::vector<int64_t> indices(static_cast<std::size_t>(count));
    std::generate(indices.begin(), indices.end(), [this] { return order_.next(); });
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
    for (std::size_t i = 0; i < samples; ++i) ++classes_.at(static_cast<std::size_t>(targets_.values<int64_t>()[i]));
  }

  const Dataset& dataset_;
  const std::size_t channels_;
  Values inputs_;
  Values targets_;
  std::vector<Measure> input_measures_;
  Measure target_measure_;
  std::vector<int64_t> classes_;
  EvenOrder order_;
  int64_t done_ = 0;
};

}  // namespace

Survey survey(const Dataset& dataset, const SurveyLimits& limits) {
  Surveyor surveyor(dataset);
  const int64_t measured = surveyor.go_to(std::min(dataset.size(), limits.measured), limits.measuring, true);
  surveyor.go_to(dataset.size(), limits.counting, false);
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
