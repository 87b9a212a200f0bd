// Data sets of labelled images that are kept in memory as bytes: the common part of MNIST, similar data sets, and
// CIFAR-10. Private to the module.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ddprun/plugin/dataset_options.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"
#include "ddprun/plugin/image_transform.hpp"

namespace ddprun::data {

// The images of one split, one after another, plane by plane, and their labels.
struct ByteImages {
  int64_t channels, height, width;
  std::vector<uint8_t> pixels;
  std::vector<uint8_t> labels;
};

// The image options: how samples are made, and how many of each split are used (0: all).
struct ImageSplitOptions {
  ImageOptions image;
  int64_t samples = 0;
  int64_t test_samples = 0;
};

// The options that read_image_split_options reads.
constexpr auto image_split_options(const char* mean = "0", const char* deviation = "1") {
  return joined(
      image_options(mean, deviation),
      std::array{integer_option("samples", nullptr, "1", "2147483647", "use only the first; all if not given"),
                 integer_option("test_samples", nullptr, "1", "2147483647",
                                "use only the first of the test split; all if not given")});
}

// Throws InvalidDataset that names the key.
ImageSplitOptions read_image_split_options(const DatasetOptions& options, int64_t channels);

// Both splits. Crop and flip apply only to the training split and are drawn from `seed`. There is a label below
// classes.size() for each image. Throws InvalidDataset("options.samples" or "options.test_samples") if there are fewer
// samples.
Splits make_image_splits(ByteImages train, ByteImages test, const ImageSplitOptions& options, uint64_t seed,
                         const std::vector<std::string>& classes);

}  // namespace ddprun::data
