// ddprun/plugin/image_transform.hpp: from 8-bit pictures to samples, float32 [channels, rows, columns], as torchvision
// makes them: resize, random crop and flip, ToTensor, Normalize. Header-only, torch-free.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ddprun/plugin/dataset_options.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"
#include "ddprun/plugin/detail/image_resize.hpp"
#include "ddprun/plugin/detail/image_window.hpp"
#include "ddprun/plugin/detail/mix.hpp"

namespace ddprun {

// A picture in memory, the caller's: one plane after another (all red, all green, all blue), rows from the top, one
// byte a value. All extents are 1 or more.
struct ImageView {
  const uint8_t* pixels;
  int64_t channels, height, width;
};

struct ImageOptions {
  // Rows and columns of a sample, whatever the picture's shape; 0: as the picture is. Resizing is antialiased: bit for
  // bit the BILINEAR of Pillow 13, and so torchvision's Resize of a PIL image.
  int64_t size = 0;
  int64_t crop_padding = 0;        // zeros on all sides, then a window as large as before at a random place; 0: none
  bool flip = false;               // mirrored left to right for one half of the draws
  std::vector<double> mean = {0};  // for all channels, or one per channel
  std::vector<double> deviation = {1};  // likewise; not 0
};

// The options that read_image_options reads, with the defaults of mean and std.
constexpr std::array<ddprun_option_spec, 5> image_options(const char* mean = "0", const char* deviation = "1") {
  return {
      integer_option("image_size", "0", "0", "8192", "rows and columns of a sample; 0: as the picture is"),
      integer_option("random_crop", "0", "0", "1024", "zeros around a training picture before a random crop"),
      flag_option("random_flip", "false", "mirror half of the training pictures"),
      list_of(real_option("mean", mean, "-1e6", "1e6", "subtracted; one for all channels, or one per channel")),
      list_of(real_option("std", deviation, "1e-6", "1e6", "divided by; one for all channels, or one per channel"))};
}

// Two lists of options, as one.
template <std::size_t a, std::size_t b>
constexpr std::array<ddprun_option_spec, a + b> joined(const std::array<ddprun_option_spec, a>& first,
                                                       const std::array<ddprun_option_spec, b>& second) {
  std::array<ddprun_option_spec, a + b> all{};
  std::copy(second.begin(), second.end(), std::copy(first.begin(), first.end(), all.begin()));
  return all;
}

// Reads image_options(). Throws InvalidDataset for as many means or deviations as there are neither 1 nor channels.
ImageOptions read_image_options(const DatasetOptions& options, int64_t channels);

// Makes samples. A crop is padded with zeros before the values are normalised, as RandomCrop(size, padding) does it to
// a picture. All functions are const and may be called from many threads at once.
class ImageTransform {
 public:
  // seed: of the random choices. Throws std::invalid_argument for as many means or deviations as there are neither 1
  // nor channels.
  ImageTransform(ImageOptions options, int64_t channels, uint64_t seed);

  // The same without crop and flip: for the test split.
  ImageTransform without_randomness() const;

  // Shape and type of a sample that is made from a picture so large.
  Field field(int64_t height, int64_t width) const;

  // Writes a sample to `out`, which has room for field(image.height, image.width).elements() floats. The random choices
  // are a function of the seed, `epoch` and `index` alone; in kPlainEpoch there are none. Takes memory only where a
  // thread meets a larger picture than before. Throws std::invalid_argument for another number of channels than it was
  // made for.
  void apply(const ImageView& image, int64_t index, int64_t epoch, float* out) const;

 private:
  struct Channel {
    std::array<float, 256> table;  // what each value of a pixel becomes
  };
  // Takes the window of each plane of the resized picture and normalises it.
  void write(const uint8_t* values, int64_t rows, int64_t columns, const detail::Window& taken, float* out) const;

  detail::Window window(int64_t index, int64_t epoch) const;

  ImageOptions options_;
  std::vector<Channel> channels_;
  uint64_t seed_;
};

inline ImageOptions read_image_options(const DatasetOptions& options, int64_t channels) {
  const auto per_channel = [&](const char* key) {
    std::vector<double> values = options.reals(key);
    if (values.size() == 1 || static_cast<int64_t>(values.size()) == channels) return values;
    DatasetOptions::refuse(
        key, std::to_string(values.size()) + " numbers for pictures of " + std::to_string(channels) +
                 (channels == 1 ? " channel: expected 1" : " channels: expected 1, or " + std::to_string(channels)));
  };
  ImageOptions image;
  image.size = options.integer("image_size");
  image.crop_padding = options.integer("random_crop");
  image.flip = options.flag("random_flip");
  image.mean = per_channel("mean");
  image.deviation = per_channel("std");
  return image;
}

inline ImageTransform::ImageTransform(ImageOptions options, int64_t channels, uint64_t seed)
    : options_(std::move(options)), seed_(seed) {
  const auto of_channel = [&](const std::vector<double>& values, int64_t channel) {
    if (values.size() != 1 && static_cast<int64_t>(values.size()) != channels) {
      throw std::invalid_argument(std::to_string(values.size()) + " means or deviations for " +
                                  std::to_string(channels) + " channels");
    }
    return static_cast<float>(values[values.size() == 1 ? 0 : static_cast<std::size_t>(channel)]);
  };
  for (int64_t i = 0; i < channels; ++i) {
    const float mean = of_channel(options_.mean, i), deviation = of_channel(options_.deviation, i);
    Channel channel;
    for (std::size_t value = 0; value < channel.table.size(); ++value) {
      channel.table[value] = (static_cast<float>(value) / 255.0f - mean) / deviation;  // ToTensor, Normalize
    }
    channels_.push_back(channel);
  }
}

inline ImageTransform ImageTransform::without_randomness() const {
  ImageTransform plain = *this;
  plain.options_.crop_padding = 0;
  plain.options_.flip = false;
  return plain;
}

inline Field ImageTransform::field(int64_t height, int64_t width) const {
  const auto channels = static_cast<int64_t>(channels_.size());
  if (options_.size == 0) return {{channels, height, width}, ElementType::float32};
  return {{channels, options_.size, options_.size}, ElementType::float32};
}

inline void ImageTransform::apply(const ImageView& image, int64_t index, int64_t epoch, float* out) const {
  if (image.channels != static_cast<int64_t>(channels_.size())) {
    throw std::invalid_argument("a picture of " + std::to_string(image.channels) + " channels, where " +
                                std::to_string(channels_.size()) + " were expected");
  }
  const int64_t rows = options_.size == 0 ? image.height : options_.size;
  const int64_t columns = options_.size == 0 ? image.width : options_.size;
  const detail::Window taken = window(index, epoch);
  if (image.height == rows && image.width == columns) {
    write(image.pixels, rows, columns, taken, out);
  } else {
    static thread_local detail::ByteResizer resizer;
    write(resizer.resize(image.pixels, image.channels, image.height, image.width, rows, columns), rows, columns, taken,
          out);
  }
}

inline void ImageTransform::write(const uint8_t* values, int64_t rows, int64_t columns, const detail::Window& taken,
                                  float* out) const {
  for (const Channel& channel : channels_) {
    detail::take_window(values, rows, columns, taken, channel.table, out);
    values += rows * columns;
    out += rows * columns;
  }
}

inline detail::Window ImageTransform::window(int64_t index, int64_t epoch) const {
  if (epoch == kPlainEpoch || (options_.crop_padding == 0 && !options_.flip)) return {};
  const uint64_t draw = mix(mix(mix(seed_) + static_cast<uint64_t>(epoch)) + static_cast<uint64_t>(index));
  const int64_t places = 2 * options_.crop_padding + 1;
  return {detail::scaled(mix(draw), places) - options_.crop_padding,
          detail::scaled(mix(draw + 1), places) - options_.crop_padding, options_.flip && mix(draw + 2) >> 63 != 0};
}

}  // namespace ddprun
