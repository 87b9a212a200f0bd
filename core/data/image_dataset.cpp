#include "data/image_dataset.hpp"

#include <memory>
#include <utility>

namespace ddprun::data {
namespace {

class ImageDataset : public Dataset {
 public:
  ImageDataset(ByteImages images, ImageTransform transform, std::vector<std::string> classes)
      : images_(std::move(images)),
        transform_(std::move(transform)),
        input_(transform_.field(images_.height, images_.width)),
        classes_(std::move(classes)) {}

  int64_t size() const override { return static_cast<int64_t>(images_.labels.size()); }
  const Field& input() const override { return input_; }
  const Field& target() const override { return target_; }
  const std::vector<std::string>& classes() const override { return classes_; }

  void fetch(std::span<const int64_t> indices, int64_t epoch, void* inputs, void* targets) const override {
    check_indices(indices, size());
    const int64_t bytes = images_.channels * images_.height * images_.width;
    const std::size_t elements = input_.elements();
    auto* input = static_cast<float*>(inputs);
    auto* target = static_cast<int64_t*>(targets);
    for (const int64_t index : indices) {
      const uint8_t* const pixels = images_.pixels.data() + index * bytes;
      transform_.apply({pixels, images_.channels, images_.height, images_.width}, index, epoch, input);
      input += elements;
      *target++ = images_.labels[static_cast<std::size_t>(index)];
    }
  }

 private:
  const ByteImages images_;
  const ImageTransform transform_;
  const Field input_;
  const Field target_{{}, ElementType::int64};
  const std::vector<std::string> classes_;
};

// Keeps the first `count` images, or all for 0.
void keep_first(ByteImages& images, int64_t count, const char* key) {
  const auto there = static_cast<int64_t>(images.labels.size());
  if (count == 0) return;
  if (count > there) {
    DatasetOptions::refuse(
        key, "the files hold " + std::to_string(there) + (there == 1 ? " sample" : " samples") + ", no more");
  }
  images.labels.resize(static_cast<std::size_t>(count));
  images.pixels.resize(static_cast<std::size_t>(count * images.channels * images.height * images.width));
  images.pixels.shrink_to_fit();
}

}  // namespace

ImageSplitOptions read_image_split_options(const DatasetOptions& options, int64_t channels) {
  return {read_image_options(options, channels), options.integer("samples"), options.integer("test_samples")};
}

Splits make_image_splits(ByteImages train, ByteImages test, const ImageSplitOptions& options, uint64_t seed,
                         const std::vector<std::string>& classes) {
  keep_first(train, options.samples, "samples");
  keep_first(test, options.test_samples, "test_samples");
  const ImageTransform transform(options.image, train.channels, seed);
  return {std::make_unique<ImageDataset>(std::move(train), transform, classes),
          std::make_unique<ImageDataset>(std::move(test), transform.without_randomness(), classes)};
}

}  // namespace ddprun::data
