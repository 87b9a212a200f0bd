#include "data/builtin.hpp"

#include "data/random.hpp"

namespace ddprun::data {
namespace {

struct Line {
  double slope, intercept, noise;
};

class LinearDataset : public Dataset {
 public:
  LinearDataset(const Line& line, int64_t samples, uint64_t seed) {
    Normal normal(seed);
    points_.resize(static_cast<std::size_t>(samples));
    for (auto& point : points_) {
      point.x = static_cast<float>(normal());
      point.y = static_cast<float>(line.slope * point.x + line.intercept + line.noise * normal());
    }
  }

  int64_t size() const override { return static_cast<int64_t>(points_.size()); }
  const Field& input() const override { return field_; }
  const Field& target() const override { return field_; }
  const std::vector<std::string>& classes() const override { return classes_; }

  void fetch(std::span<const int64_t> indices, int64_t, void* inputs, void* targets) const override {
    check_indices(indices, size());
    auto* x = static_cast<float*>(inputs);
    auto* y = static_cast<float*>(targets);
    for (const int64_t index : indices) {
      const Point& point = points_[static_cast<std::size_t>(index)];
      *x++ = point.x;
      *y++ = point.y;
    }
  }

 private:
  struct Point {
    float x, y;
  };
  const Field field_{{1}, ElementType::float32};
  const std::vector<std::string> classes_;
  std::vector<Point> points_;
};

}  // namespace

Splits open_linear(const DatasetContext& context) {
  const DatasetOptions options("linear", context, kLinearOptions);
  options.refuse_root();
  const Line line{options.real("slope"), options.real("intercept"), options.real("noise")};
  const int64_t samples = options.integer("samples");
  const int64_t test_samples = options.integer("test_samples");
  const uint64_t seed = mix(options.seed());
  return {std::make_unique<LinearDataset>(line, samples, mix(seed)),
          std::make_unique<LinearDataset>(line, test_samples, mix(seed + 1))};
}

}  // namespace ddprun::data
