// @NAME@: points in the plane; the class of a point says whether it is inside a circle.
// The contract is in ddprun/plugin/dataset_plugin.hpp.
#include <cmath>
#include <cstdint>
#include <random>

#include "ddprun/plugin/dataset_options.hpp"

namespace {

class Points final : public ddprun::Dataset {
 public:
  Points(int64_t size, uint64_t seed) : size_(size), seed_(seed) {}

  int64_t size() const override { return size_; }
  const ddprun::Field& input() const override { return input_; }
  const ddprun::Field& target() const override { return target_; }
  const std::vector<std::string>& classes() const override { return classes_; }

  // Many threads call it. A sample may depend on the seed, the epoch and its index, and on nothing else.
  void fetch(std::span<const int64_t> indices, int64_t /*epoch*/, void* inputs, void* targets) const override {
    ddprun::check_indices(indices, size_);
    auto* point = static_cast<float*>(inputs);
    auto* inside = static_cast<int64_t*>(targets);
    for (const int64_t index : indices) {
      std::seed_seq sequence{seed_, static_cast<uint64_t>(index)};
      std::mt19937 random(sequence);
      for (int i = 0; i < 2; ++i) point[i] = 2 * std::generate_canonical<float, 24>(random) - 1;
      *inside++ = std::hypot(point[0], point[1]) < 0.8F ? 1 : 0;
      point += 2;
    }
  }

 private:
  int64_t size_;
  uint64_t seed_;
  ddprun::Field input_{{2}, ddprun::ElementType::float32};
  ddprun::Field target_{{}, ddprun::ElementType::int64};  // a scalar: the class
  std::vector<std::string> classes_{"outside", "inside"};
};

constexpr ddprun_option_spec kOptions[] = {
    ddprun::integer_option("samples", "10000", "1", "1000000000", "samples of the training split"),
    ddprun::integer_option("test_samples", "1000", "1", "1000000000", "samples of the test split"),
};

ddprun::Splits open(const ddprun::DatasetContext& context) {
  const ddprun::DatasetOptions options("@NAME@", context, kOptions);
  const auto points = [&](const char* option, uint64_t split) {
    return std::make_unique<Points>(options.integer(option), 2 * context.seed + split);
  };
  return {points("samples", 0), points("test_samples", 1)};
}

}  // namespace

DDPRUN_DATASET_PLUGIN(open, "@NAME@", "0.1.0", "points, and whether they are inside a circle", kOptions);
