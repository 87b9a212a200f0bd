// image-folder: PNG and JPEG images, with one folder per class.
//  root     the folder; picture.hpp describes its content
//  options  channels = 3 | 1 (RGB, or grey), and those of image_transform.hpp; image_size is required unless all
//           images have the same size. Crop and flip apply only to the training split.
#include <algorithm>
#include <array>
#include <utility>

#include "ddprun/plugin/dataset_options.hpp"
#include "ddprun/plugin/image_transform.hpp"
#include "picture.hpp"

namespace ddprun::image_folder {
namespace {

// Images stay in their files and are decoded when they are fetched.
class ImageFolder : public Dataset {
 public:
  // `size`: of all images, if they have the same size and are not resized; otherwise {}.
  ImageFolder(std::vector<Picture> pictures, std::vector<std::string> classes, ImageTransform transform, int channels,
              Size size)
      : pictures_(std::move(pictures)),
        classes_(std::move(classes)),
        transform_(std::move(transform)),
        channels_(channels),
        size_(size),
        input_(transform_.field(size.height, size.width)) {}

  int64_t size() const override { return static_cast<int64_t>(pictures_.size()); }
  const Field& input() const override { return input_; }
  const Field& target() const override { return target_; }
  const std::vector<std::string>& classes() const override { return classes_; }

  void fetch(std::span<const int64_t> indices, int64_t epoch, void* inputs, void* targets) const override {
    check_indices(indices, size());
    auto* input = static_cast<float*>(inputs);
    auto* target = static_cast<int64_t*>(targets);
    thread_local Planes planes;  // a loader fetches one image at a time
    for (const int64_t index : indices) {
      const Picture& picture = pictures_[static_cast<std::size_t>(index)];
      read_planes(picture.path, channels_, planes);
      if (size_ != Size{} && planes.size != size_) {
        throw InvalidDataset("root", picture.path + ": has changed its size since it was opened");
      }
      transform_.apply({planes.values.data(), channels_, planes.size.height, planes.size.width}, index, epoch, input);
      input += input_.elements();
      *target++ = picture.target;
    }
  }

 private:
  const std::vector<Picture> pictures_;
  const std::vector<std::string> classes_;
  const ImageTransform transform_;
  const int channels_;
  const Size size_;
  const Field input_;
  const Field target_{{}, ElementType::int64};
};

std::string described(const Picture& picture, const Size& size) {
  return picture.path + " has " + std::to_string(size.width) + " x " + std::to_string(size.height) + " pixels";
}

// Reads the header of every file. If `resized` is false, returns the common size, otherwise {}.
Size check_pictures(const Folder& folder, bool resized) {
  const Picture& first = folder.train.front();
  const Size common = read_size(first.path);
  for (const auto* split : {&folder.train, &folder.test}) {
    for (const Picture& picture : *split) {
      const Size size = read_size(picture.path);
      if (resized || size == common) continue;
      DatasetOptions::refuse("image_size", "is needed where pictures differ in size: " + described(first, common) +
                                               ", " + described(picture, size));
    }
  }
  return resized ? Size{} : common;
}

constexpr auto kOptions =
    joined(image_options(), std::array{choice_option("channels", "3", "3|1", "red, green and blue, or grey")});

Splits open(const DatasetContext& context) {
  const DatasetOptions options("image-folder", context, kOptions);
  const int channels = options.text("channels") == "3" ? 3 : 1;
  const ImageOptions image = read_image_options(options, channels);
  Folder folder = scan(context.root);
  const Size size = check_pictures(folder, image.size > 0);
  const ImageTransform transform(image, channels, context.seed);
  Splits splits;
  splits.train = std::make_unique<ImageFolder>(std::move(folder.train), folder.classes, transform, channels, size);
  if (folder.test.empty()) return splits;
  splits.test = std::make_unique<ImageFolder>(std::move(folder.test), folder.classes, transform.without_randomness(),
                                              channels, size);
  return splits;
}

}  // namespace
}  // namespace ddprun::image_folder

DDPRUN_DATASET_PLUGIN(ddprun::image_folder::open, "image-folder", "0.1.0",
                      "a folder of PNG or JPEG pictures for each class", ddprun::image_folder::kOptions);
