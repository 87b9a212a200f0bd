#include "data/builtin.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "data/random.hpp"

namespace ddprun::data {
namespace {

constexpr int64_t most_elements = int64_t{1} << 28;  // of one sample: 1 GiB
constexpr std::size_t windows = 4096;

// "3x224x224" -> {3, 224, 224}
std::vector<int64_t> parse_shape(const std::string& text) {
  std::vector<int64_t> shape;
  int64_t elements = 1;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    int64_t extent = 0;
    const auto [stop, error] = std::from_chars(at, end, extent);
    if (error != std::errc() || extent < 1 || (stop != end && *stop != 'x')) {
      throw InvalidDataset("options.shape", "expected extents of 1 or more with x between them, such as \"3x224x224\"");
    }
    if (extent > most_elements / elements) {
      throw InvalidDataset("options.shape", "more than " + std::to_string(most_elements) + " elements in a sample");
    }
    elements *= extent;
    shape.push_back(extent);
    if (stop == end) return shape;
    at = stop + 1;
  }
}

// Every sample is a window of one pool of standard normal values, so that fetching one is only a copy.
class SyntheticDataset : public Dataset {
 public:
  SyntheticDataset(std::shared_ptr<const std::vector<float>> pool, Field input, int64_t classes, int64_t samples,
                   uint64_t seed)
      : pool_(std::move(pool)), input_(std::move(input)), samples_(samples), seed_(seed) {
    for (int64_t i = 0; i < classes; ++i) classes_.push_back(std::to_string(i));
  }

  int64_t size() const override { return samples_; }
  const Field& input() const override { return input_; }
  const Field& target() const override { return target_; }
  const std::vector<std::string>& classes() const override { return classes_; }

  void fetch(std::span<const int64_t> indices, int64_t, void* inputs, void* targets) const override {
    check_indices(indices, size());
    auto* input = static_cast<char*>(inputs);
    auto* target = static_cast<int64_t*>(targets);
    for (const int64_t index : indices) {
      const uint64_t hash = mix(seed_ ^ static_cast<uint64_t>(index));
      std::memcpy(input, pool_->data() + hash % windows, input_.bytes());
      input += input_.bytes();
      *target++ = static_cast<int64_t>(mix(hash) % classes_.size());
    }
  }

 private:
  std::shared_ptr<const std::vector<float>> pool_;
  const Field input_;
  const Field target_{{}, ElementType::int64};
  std::vector<std::string> classes_;
  int64_t samples_;
  uint64_t seed_;
};

}  // namespace

Splits open_synthetic(const DatasetContext& context) {
  const DatasetOptions options("synthetic", context, kSyntheticOptions);
  options.refuse_root();
  const Field input{parse_shape(options.text("shape")), ElementType::float32};
  const int64_t classes = options.integer("classes");
  const int64_t samples = options.integer("samples");
  const int64_t test_samples = options.integer("test_samples");
  const uint64_t seed = mix(options.seed());

  auto pool = std::make_shared<std::vector<float>>(input.elements() + windows);
  Normal normal(seed);
  std::generate(pool->begin(), pool->end(), [&] { return static_cast<float>(normal()); });
  return {std::make_unique<SyntheticDataset>(pool, input, classes, samples, mix(seed)),
          std::make_unique<SyntheticDataset>(pool, input, classes, test_samples, mix(seed + 1))};
}

}  // namespace ddprun::data
