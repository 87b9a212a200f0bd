// A data set of numbers; the class says whether a number is even.
#include "ddprun/plugin/dataset_options.hpp"

namespace {

class Evens : public ddprun::Dataset {
 public:
  explicit Evens(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  const ddprun::Field& input() const override { return input_; }
  const ddprun::Field& target() const override { return target_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  void fetch(std::span<const int64_t> indices, int64_t, void* inputs, void* targets) const override {
    ddprun::check_indices(indices, size_);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      static_cast<float*>(inputs)[i] = static_cast<float>(indices[i]);
      static_cast<int64_t*>(targets)[i] = 1 - indices[i] % 2;
    }
  }

 private:
  int64_t size_;
  ddprun::Field input_{{1}, ddprun::ElementType::float32};
  ddprun::Field target_{{}, ddprun::ElementType::int64};
  std::vector<std::string> classes_{"odd", "even"};
};

constexpr ddprun_option_spec kOptions[] = {
    ddprun::integer_option("samples", "10", "1", "1000", "of the training split"),
};

ddprun::Splits open(const ddprun::DatasetContext& context) {
  const ddprun::DatasetOptions options("evens", context, kOptions);
  return {std::make_unique<Evens>(options.integer("samples")), nullptr};
}

}  // namespace

DDPRUN_DATASET_PLUGIN(open, "evens", "1.0", "numbers, and whether they are even", kOptions);
