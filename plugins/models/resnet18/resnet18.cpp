// resnet18: torchvision's ResNet-18 for images of three channels; cross entropy.
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "ddprun/plugin/classifier.hpp"
#include "ddprun/plugin/model_options.hpp"
#include "ddprun/plugin/model_shape.hpp"
#include "network.hpp"

namespace {

using ddprun::resnet18::Network;
using ddprun::resnet18::Stem;

constexpr ddprun_option_spec kOptions[] = {
    ddprun::choice_option("stem", "imagenet", "imagenet|small",
                          "7x7 with stride 2, then pooling; or 3x3, for images such as 32x32"),
    ddprun::choice_option("memory_format", "contiguous", "contiguous|channels_last", "of weights and images"),
};

struct Settings {
  explicit Settings(const ddprun::ModelContext& context) {
    const ddprun::ModelOptions options(context.options, "resnet18", kOptions);
    stem = options.text("stem") == "small" ? Stem::small : Stem::imagenet;
    channels_last = options.text("memory_format") == "channels_last";
  }

  Stem stem;
  bool channels_last = false;
};

// The ratio of the image's size to that of the last feature map.
int64_t reduction(Stem stem) {
  return stem == Stem::imagenet ? 32 : 8;
}

// The image's shape, if the last feature map has at least one pixel.
std::vector<int64_t> image_shape(const ddprun::ModelContext& context, Stem stem) {
  const std::vector<int64_t>& shape = context.input_shape;
  if (shape.size() != 3 || shape[0] != 3) {
    throw std::invalid_argument(
        "resnet18 takes images of the shape [3, height, width], but the samples of the data set "
        "have the shape " +
        ddprun::shape_text(shape) + "; choose a data set of colour images");
  }
  const int64_t least = reduction(stem);
  if (std::min(shape[1], shape[2]) < least) {
    throw std::invalid_argument("resnet18 makes an image " + std::to_string(least) +
                                " times smaller, and one of the shape " + ddprun::shape_text(shape) +
                                " is too small for that; give larger images" +
                                (stem == Stem::imagenet ? ", or model.options.stem = \"small\" (from 8x8)" : ""));
  }
  return shape;
}

class ResNet18 final : public ddprun::Classifier {
 public:
  explicit ResNet18(const ddprun::ModelContext& context)
      : settings_(context),
        shape_("resnet18", image_shape(context, settings_.stem)),
        network_(settings_.stem, classes_of(context, "resnet18")) {
    if (!settings_.channels_last) return;
    // Values and names stay the same; only the memory format changes.
    for (torch::Tensor& parameter : network_.parameters()) {
      if (parameter.dim() == 4) parameter.set_data(parameter.detach().contiguous(torch::MemoryFormat::ChannelsLast));
    }
  }

  torch::nn::Module& module() override { return network_; }

  // [batch, 3, height, width] -> [batch, classes]: scores before softmax
  torch::Tensor forward(const torch::Tensor& input) override {
    shape_.check(input);
    refuse_single_value(input);
    return network_.forward(settings_.channels_last ? input.contiguous(torch::MemoryFormat::ChannelsLast) : input);
  }

 private:
  // BatchNorm has no variance for a batch of one image with a feature map of one pixel.
  void refuse_single_value(const torch::Tensor& input) const {
    const int64_t least = reduction(settings_.stem);
    if (!network_.is_training() || input.size(0) > 1 || std::max(input.size(2), input.size(3)) > least) return;
    throw std::invalid_argument("a batch of one image of the shape " +
                                ddprun::shape_text(input.sizes().slice(1).vec()) +
                                " leaves BatchNorm a single value; choose a larger data.batch_size, or data.last = "
                                "\"drop\" if only the last batch of an epoch is too small" +
                                (settings_.stem == Stem::imagenet ? ", or model.options.stem = \"small\"" : ""));
  }

  const Settings settings_;
  ddprun::SampleShape shape_;
  Network network_;
};

}  // namespace

DDPRUN_MODEL_PLUGIN(ResNet18, "resnet18", "0.1.0", kOptions);
