#include "ddprun/plugin/image_transform.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include "ddprun/plugin/detail/mix.hpp"
#include "sdk/image_resize.hpp"

namespace ddprun {
namespace detail {

// A window as large as the plane itself, moved down and to the right by so much, then mirrored left to right or not.
struct Window {
  int64_t down = 0, right = 0;
  bool mirrored = false;
};

}  // namespace detail

namespace {

using detail::Window;

// Writes table[value] for each value in the window, and table[0] where it reaches beyond the plane. plane and out:
// [rows, columns].
void take_window(const uint8_t* plane, int64_t rows, int64_t columns, const Window& window,
                 const std::array<float, 256>& table, float* out) {
  const auto convert = [&](uint8_t value) { return table[value]; };
  if (window.down == 0 && window.right == 0 && !window.mirrored) {
    std::transform(plane, plane + rows * columns, out, convert);
    return;
  }
  // The columns [begin, end) of the window lie in the plane.
  const int64_t begin = std::clamp<int64_t>(-window.right, 0, columns);
  const int64_t end = std::clamp<int64_t>(columns - window.right, begin, columns);
  for (int64_t row = window.down; row < rows + window.down; ++row, out += columns) {
    if (row < 0 || row >= rows || begin == end) {
      std::fill_n(out, columns, table[0]);
      continue;
    }
    const uint8_t* const source = plane + row * columns + (begin + window.right);
    std::fill_n(out, begin, table[0]);
    std::transform(source, source + (end - begin), out + begin, convert);
    std::fill(out + end, out + columns, table[0]);
    if (window.mirrored) std::reverse(out, out + columns);
  }
}

}  // namespace

ImageOptions read_image_options(const DatasetOptions& options, int64_t channels) {
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

ImageTransform::ImageTransform(ImageOptions options, int64_t channels, uint64_t seed)
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

ImageTransform ImageTransform::without_randomness() const {
  ImageTransform plain = *this;
  plain.options_.crop_padding = 0;
  plain.options_.flip = false;
  return plain;
}

Field ImageTransform::field(int64_t height, int64_t width) const {
  const auto channels = static_cast<int64_t>(channels_.size());
  if (options_.size == 0) return {{channels, height, width}, ElementType::float32};
  return {{channels, options_.size, options_.size}, ElementType::float32};
}

void ImageTransform::apply(const ImageView& image, int64_t index, int64_t epoch, float* out) const {
  if (image.channels != static_cast<int64_t>(channels_.size())) {
    throw std::invalid_argument("a picture of " + std::to_string(image.channels) + " channels, where " +
                                std::to_string(channels_.size()) + " were expected");
  }
  const int64_t rows = options_.size == 0 ? image.height : options_.size;
  const int64_t columns = options_.size == 0 ? image.width : options_.size;
  const detail::Window taken = window(index, epoch);
  static thread_local detail::ByteResizer resizer;
  const uint8_t* plane = image.pixels;
  if (image.height != rows || image.width != columns) {
    plane = resizer.resize(image.pixels, image.channels, image.height, image.width, rows, columns);
  }
  for (const Channel& channel : channels_) {
    take_window(plane, rows, columns, taken, channel.table, out);
    plane += rows * columns;
    out += rows * columns;
  }
}

detail::Window ImageTransform::window(int64_t index, int64_t epoch) const {
  if (epoch == kPlainEpoch || (options_.crop_padding == 0 && !options_.flip)) return {};
  const uint64_t draw = mix(mix(mix(seed_) + static_cast<uint64_t>(epoch)) + static_cast<uint64_t>(index));
  const int64_t places = 2 * options_.crop_padding + 1;
  return {detail::scaled(mix(draw), places) - options_.crop_padding,
          detail::scaled(mix(draw + 1), places) - options_.crop_padding, options_.flip && mix(draw + 2) >> 63 != 0};
}

}  // namespace ddprun
