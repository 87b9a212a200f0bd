// Data sets of labelled pictures that stay in memory as bytes: what MNIST, its kin and CIFAR-10 share. Private to the
// room.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ddprun/plugin/dataset_options.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"
#include "ddprun/plugin/image_transform.hpp"

namespace ddprun::data {

// The pictures of one split, one after another, each plane by plane, and the label of each.
struct ByteImages {
  int64_t channels, height, width;
  std::vector<uint8_t> pixels;
  std::vector<uint8_t> labels;
};

// What the options say of pictures: how samples are made, and how many of each split are used (0: all).
struct ImageSplitOptions {
  ImageOptions image;
  int64_t samples = 0;
  int64_t test_samples = 0;
};

// The keys that read_image_split_options reads, and `more`.
std::vector<std::string> image_split_names(const std::vector<std::string>& more);

// Throws InvalidDataset that names the key.
ImageSplitOptions read_image_split_options(const DatasetOptions& options, const ImageOptions& defaults,
                                           int64_t channels);

// Both splits; crop and flip are for the training split alone, and drawn from `seed`. There is a label for each
// picture, below classes.size(). Throws InvalidDataset("options.samples" or "options.test_samples") when there are not so
// many.
Splits make_image_splits(ByteImages train, ByteImages test, const ImageSplitOptions& options, uint64_t seed,
                         const std::vector<std::string>& classes);

}  // namespace ddprun::data
