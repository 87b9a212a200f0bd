#include "tools/data/survey.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace ddprun::data {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;  // bytes fetched at a time, unless one sample is larger

// Sums of differences to the first value, which keeps precision if the values are far from 0.
class Measure {
 public:
  void add(std::span<const double> values) {
    for (const double value : values) add(value);
  }

  Spread spread() const {
    if (count_ == 0) return {NAN, NAN, NAN, NAN, others_};
    const auto n = static_cast<double>(count_);
    const double offset = sum_ / n;
    return {low_, high_, origin_ + offset, std::sqrt(std::max(0.0, squares_ / n - offset * offset)), others_};
  }

 private:
  void add(double value) {
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

// The values of samples, one sample after another.
std::vector<double> numbers(const Field& field, const std::vector<std::byte>& bytes) {
  const auto all = [&]<class T>(const T* values) {
    return std::vector<double>(values, values + bytes.size() / sizeof(T));
  };
  if (field.type == ElementType::float32) return all(reinterpret_cast<const float*>(bytes.data()));
  return all(reinterpret_cast<const int64_t*>(bytes.data()));
}

struct Bytes {
  std::vector<std::byte> input, target;
};

Bytes fetch(const Dataset& dataset, const std::vector<int64_t>& indices, int64_t epoch) {
  Bytes bytes{std::vector<std::byte>(indices.size() * dataset.input().bytes()),
              std::vector<std::byte>(indices.size() * dataset.target().bytes())};
  dataset.fetch(indices, epoch, bytes.input.data(), bytes.target.data());
  return bytes;
}

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
      std::vector<int64_t> indices(static_cast<std::size_t>(std::min(piece, end - done_)));
      std::generate(indices.begin(), indices.end(), [this] { return order_.next(); });
      const Bytes bytes = fetch(dataset_, indices, 0);
      if (measured) measure_inputs(numbers(dataset_.input(), bytes.input));
      count_targets(numbers(dataset_.target(), bytes.target));
      done_ += static_cast<int64_t>(indices.size());
    }
    return done_;
  }

  Survey result(int64_t measured) const {
    Survey survey{measured, {}, done_, classes_, target_measure_.spread()};
    for (const Measure& measure : input_measures_) survey.inputs.push_back(measure.spread());
    return survey;
  }

 private:
  void measure_inputs(std::span<const double> values) {
    const std::size_t plane = dataset_.input().elements() / channels_;
    for (std::size_t i = 0; i * plane < values.size(); ++i) {
      input_measures_[i % channels_].add(values.subspan(i * plane, plane));
    }
  }

  void count_targets(std::span<const double> values) {
    if (classes_.empty()) return target_measure_.add(values);
    for (const double label : values) ++classes_.at(static_cast<std::size_t>(label));
  }

  const Dataset& dataset_;
  const std::size_t channels_;
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
  const Bytes bytes = fetch(dataset, {index}, epoch);
  return {numbers(dataset.input(), bytes.input), numbers(dataset.target(), bytes.target)};
}

bool has_classes(const Dataset& dataset) {
  return !dataset.classes().empty() && dataset.target().shape.empty() && dataset.target().type == ElementType::int64;
}

}  // namespace ddprun::data
