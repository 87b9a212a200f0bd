#include "tools/data/survey.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

namespace ddprun::data {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;  // bytes fetched at a time, unless one sample is larger

// Sums of differences to the first value, which keeps precision if the values are far from 0.
class Measure {
 public:
  void add(std::span<const double> values) {
    for (const double value : values) {
      if (!std::isfinite(value)) {
        ++others_;
        continue;
      }
      if (count_++ == 0) low_ = high_ = origin_ = value;
      low_ = std::min(low_, value);
      high_ = std::max(high_, value);
      const double distance = value - origin_;
      sum_ += distance;
      squares_ += distance * distance;
    }
  }

  Spread spread() const {
    if (count_ == 0) return {NAN, NAN, NAN, NAN, others_};
    const auto n = static_cast<double>(count_);
    const double offset = sum_ / n;
    return {low_, high_, origin_ + offset, std::sqrt(std::max(0.0, squares_ / n - offset * offset)), others_};
  }

 private:
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

// Steps of this size, modulo `size`, visit every sample once, and any number of them is spread evenly: it is about the
// golden section of `size` (Weyl's sequence), made coprime to it.
int64_t even_step(int64_t size) {
  int64_t step = std::max<int64_t>(1, std::llround(static_cast<double>(size) * 0.6180339887498949));
  while (std::gcd(step, size) != 1) ++step;
  return step;
}

}  // namespace

Survey survey(const Dataset& dataset, const SurveyLimits& limits) {
  const Field& input = dataset.input();
  const std::size_t channels = input.shape.size() == 3 ? static_cast<std::size_t>(input.shape[0]) : 1;
  const std::size_t plane = input.elements() / channels;
  const auto piece = static_cast<int64_t>(std::max<std::size_t>(1, kPieceBytes / input.bytes()));
  const int64_t step = even_step(dataset.size());
  int64_t next = 0;  // index of a sample
  std::vector<Measure> inputs(channels);
  Measure targets;
  Survey survey;
  if (has_classes(dataset)) survey.classes.resize(dataset.classes().size());
  // Counts samples until there are `end` or the time is over, at least one; and optionally reads their inputs.
  const auto go_to = [&](int64_t end, std::chrono::duration<double> time, bool measured) {
    const auto begin = Clock::now();
    while (survey.counted < end && (survey.counted == 0 || Clock::now() - begin < time)) {
      std::vector<int64_t> indices(static_cast<std::size_t>(std::min(piece, end - survey.counted)));
      for (int64_t& index : indices) index = std::exchange(next, (next + step) % dataset.size());
      const Bytes bytes = fetch(dataset, indices, 0);
      const std::vector<double> values = measured ? numbers(input, bytes.input) : std::vector<double>();
      for (std::size_t i = 0; i * plane < values.size(); ++i) {
        inputs[i % channels].add(std::span(values).subspan(i * plane, plane));
      }
      const std::vector<double> labels = numbers(dataset.target(), bytes.target);
      if (survey.classes.empty()) {
        targets.add(labels);
      } else {
        for (const double label : labels) ++survey.classes.at(static_cast<std::size_t>(label));
      }
      survey.counted += static_cast<int64_t>(indices.size());
    }
  };
  go_to(std::min(dataset.size(), limits.measured), limits.measuring, true);
  survey.measured = survey.counted;
  go_to(dataset.size(), limits.counting, false);
  for (const Measure& measure : inputs) survey.inputs.push_back(measure.spread());
  survey.targets = targets.spread();
  return survey;
}

Sample fetch_sample(const Dataset& dataset, int64_t index, int64_t epoch) {
  const Bytes bytes = fetch(dataset, {index}, epoch);
  return {numbers(dataset.input(), bytes.input), numbers(dataset.target(), bytes.target)};
}

bool has_classes(const Dataset& dataset) {
  return !dataset.classes().empty() && dataset.target().shape.empty() && dataset.target().type == ElementType::int64;
}

}  // namespace ddprun::data
