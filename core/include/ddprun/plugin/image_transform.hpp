// ddprun/plugin/image_transform.hpp: from 8-bit pictures to samples, float32 [channels, rows, columns], as torchvision
// makes them: resize, random crop and flip, ToTensor, Normalize. Torch-free.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ddprun/plugin/dataset_options.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun {
namespace detail {
struct Window;
}

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

// Reads image_options(). Throws InvalidDataset unless there are one or `channels` means,
// and one or `channels` deviations.
ImageOptions read_image_options(const DatasetOptions& options, int64_t channels);

// Makes samples. A crop is padded with zeros before the values are normalized, as RandomCrop(size, padding) does it to
// an image. All functions are const and may be called from many threads at once.
class ImageTransform {
 public:
  // seed: of the random choices. Throws std::invalid_argument unless there are one or `channels` means, and one or
  // `channels` deviations.
  ImageTransform(ImageOptions options, int64_t channels, uint64_t seed);

  // The same without crop and flip: for the test split.
  ImageTransform without_randomness() const;

  // Shape and type of a sample that is made from an image of this size, in pixels.
  Field field(int64_t height, int64_t width) const;

  // Writes a sample to `out`, which holds field(image.height, image.width).elements() floats. The random choices
  // are a function of the seed, `epoch` and `index` alone; in kPlainEpoch there are none. Allocates memory only for an
  // image larger than any before on this thread. Throws std::invalid_argument if the image has another number of
  // channels than the constructor was given.
  void apply(const ImageView& image, int64_t index, int64_t epoch, float* out) const;

 private:
  struct Channel {
    std::array<float, 256> table;  // what each value of a pixel becomes
  };
  detail::Window window(int64_t index, int64_t epoch) const;

  ImageOptions options_;
  std::vector<Channel> channels_;
  uint64_t seed_;
};

}  // namespace ddprun
