// Points on a line; fetching one of them never returns, so that its rank hangs and the peers wait.
#include <chrono>
#include <thread>

#include "ddprun/plugin/dataset_options.hpp"

namespace {

class Stalling final : public ddprun::Dataset {
 public:
  Stalling(int64_t size, int64_t stalls) : size_(size), stalls_(stalls) {}
  int64_t size() const override { return size_; }
  const ddprun::Field& input() const override { return field_; }
  const ddprun::Field& target() const override { return field_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  void fetch(std::span<const int64_t> indices, int64_t, void* inputs, void* targets) const override {
    for (std::size_t i = 0; i < indices.size(); ++i) {
      while (indices[i] == stalls_) std::this_thread::sleep_for(std::chrono::seconds(1));
      static_cast<float*>(inputs)[i] = static_cast<float>(indices[i]) / static_cast<float>(size_);
      static_cast<float*>(targets)[i] = 0.5F;
    }
  }

 private:
  int64_t size_, stalls_;
  ddprun::Field field_{{1}, ddprun::ElementType::float32};
  std::vector<std::string> classes_;
};

constexpr ddprun_option_spec kOptions[] = {
    ddprun::integer_option("samples", "100", "1", "1000", "of the training split"),
    ddprun::integer_option("at", "0", "0", "1000", "the sample that never comes"),
};

ddprun::Splits open(const ddprun::DatasetContext& context) {
  const ddprun::DatasetOptions options("stalling", context, kOptions);
  const int64_t size = options.integer("samples");
  return {std::make_unique<Stalling>(size, options.integer("at")), nullptr};
}

}  // namespace

DDPRUN_DATASET_PLUGIN(open, "stalling", "1.0", "a line, one point of which never comes", kOptions);
