#include "data/idx_dataset.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "data/idx.hpp"
#include "ddprun/dataset_options.hpp"

namespace ddprun::data {
namespace {

constexpr int64_t most_classes = 256;  // a label is one byte

using PixelTable = std::array<float, 256>;  // what each value of a pixel becomes

// Division by 255, then (x - mean) / std, each rounded to float32: bit for bit torchvision's ToTensor and Normalize.
PixelTable pixel_table(const DatasetOptions& options) {
  const auto mean = static_cast<float>(options.number("mean", 0, -1e6, 1e6));
  const auto deviation = static_cast<float>(options.number("std", 1, 1e-6, 1e6));
  PixelTable table;
  for (std::size_t value = 0; value < table.size(); ++value) {
    const float scaled = static_cast<float>(value) / 255.0f;
    table[value] = (scaled - mean) / deviation;
  }
  return table;
}

// One split: its images and labels stay in memory as they lie in the files, a byte each.
class IdxDataset : public Dataset {
 public:
  IdxDataset(IdxFile images, IdxFile labels, const PixelTable& pixels, std::vector<std::string> classes)
      : images_(std::move(images)),
        labels_(std::move(labels)),
        pixels_(pixels),
        input_{{1, images_.header.extents[1], images_.header.extents[2]}, ElementType::float32},
        classes_(std::move(classes)) {}

  int64_t size() const override { return images_.header.extents[0]; }
  const Field& input() const override { return input_; }
  const Field& target() const override { return target_; }
  const std::vector<std::string>& classes() const override { return classes_; }

  void fetch(std::span<const int64_t> indices, int64_t, void* inputs, void* targets) const override {
    check_indices(indices, size());
    const std::size_t pixels = input_.elements();
    auto* input = static_cast<float*>(inputs);
    auto* target = static_cast<int64_t*>(targets);
    for (const int64_t index : indices) {
      const auto sample = static_cast<std::size_t>(index);
      const auto image = images_.values().subspan(sample * pixels, pixels);
      input = std::transform(image.begin(), image.end(), input, [this](uint8_t pixel) { return pixels_[pixel]; });
      *target++ = labels_.values()[sample];
    }
  }

 private:
  const IdxFile images_;
  const IdxFile labels_;
  const PixelTable pixels_;
  const Field input_;
  const Field target_{{}, ElementType::int64};
  const std::vector<std::string> classes_;
};

struct Source {
  std::string root;
  std::string advice;  // what to do when a file is not there
};

// The file as it is, or packed. `advice` ends the message when there is neither.
std::string find_file(const Source& source, const std::string& name) {
  const std::string plain = (std::filesystem::path(source.root) / name).string();
  for (const std::string& path : {plain, plain + ".gz"}) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (status.type() == std::filesystem::file_type::not_found) continue;
    if (error) throw DatasetFault("root", path + ": " + error.message());
    if (status.type() != std::filesystem::file_type::regular) throw DatasetFault("root", path + ": is no regular file");
    return path;
  }
  throw DatasetFault("root", "found neither " + plain + " nor " + plain + ".gz; " + source.advice);
}

struct Files {
  IdxFile images;
  IdxFile labels;
};

Files read_split(const Source& source, const std::string& split) {
  Files files{read_idx(find_file(source, split + "-images-idx3-ubyte"), 3, "pixels"),
              read_idx(find_file(source, split + "-labels-idx1-ubyte"), 1, "labels")};
  const int64_t images = files.images.header.extents[0];
  const int64_t labels = files.labels.header.extents[0];
  if (images != labels) {
    throw DatasetFault("root", files.labels.path + ": offset 4: " + std::to_string(labels) + " labels for the " +
                                   std::to_string(images) + " images in " + files.images.path);
  }
  return files;
}

void check_labels(const IdxFile& file, std::size_t classes) {
  const auto labels = file.values();
  const auto wrong = std::find_if(labels.begin(), labels.end(), [&](uint8_t label) { return label >= classes; });
  if (wrong == labels.end()) return;
  const auto offset = file.header.bytes + static_cast<std::size_t>(wrong - labels.begin());
  throw DatasetFault("root", file.path + ": offset " + std::to_string(offset) + ": label " + std::to_string(*wrong) +
                                 " in a data set of " + std::to_string(classes) + " classes (0 to " +
                                 std::to_string(classes - 1) + ")");
}

void check_same_shape(const IdxFile& train, const IdxFile& test) {
  for (std::size_t i = 1; i < 3; ++i) {
    const int64_t train_extent = train.header.extents[i];
    const int64_t test_extent = test.header.extents[i];
    if (train_extent == test_extent) continue;
    throw DatasetFault("root", test.path + ": offset " + std::to_string(4 + 4 * i) + ": images with " +
                                   std::to_string(test_extent) + (i == 1 ? " rows" : " columns") + ", where " +
                                   train.path + " has " + std::to_string(train_extent));
  }
}

std::vector<std::string> numbered(int64_t classes) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

Splits make_splits(Files train, Files test, const PixelTable& pixels, const std::vector<std::string>& classes) {
  check_same_shape(train.images, test.images);
  check_labels(train.labels, classes.size());
  check_labels(test.labels, classes.size());
  return {std::make_unique<IdxDataset>(std::move(train.images), std::move(train.labels), pixels, classes),
          std::make_unique<IdxDataset>(std::move(test.images), std::move(test.labels), pixels, classes)};
}

const std::string four_files =
    "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte";

Splits open_named(const std::string& name, const DatasetContext& context, const Source& source,
                  const std::vector<std::string>& classes) {
  const PixelTable pixels = pixel_table(DatasetOptions(name, context, {"mean", "std"}));
  Files train = read_split(source, "train");
  Files test = read_split(source, "t10k");
  return make_splits(std::move(train), std::move(test), pixels, classes);
}

}  // namespace

Splits open_mnist(const DatasetContext& context) {
  const std::string root = context.root.empty() ? "data/mnist" : context.root;
  return open_named("mnist", context,
                    {root, "put " + four_files + " there, plain or .gz, or set data.root to their folder"},
                    numbered(10));
}

Splits open_fashion_mnist(const DatasetContext& context) {
  const std::string root = context.root.empty() ? "/usr/share/datasets/fashion-mnist" : context.root;
  return open_named(
      "fashion-mnist", context,
      {root,
       "apt-get install dataset-fashion-mnist and leave data.root out, or put " + four_files + " there, plain or .gz"},
      {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"});
}

Splits open_idx(const DatasetContext& context) {
  const DatasetOptions options("idx", context, {"mean", "std", "classes"});
  const PixelTable pixels = pixel_table(options);
  const int64_t classes = options.integer("classes", 0, 1, most_classes);
  if (context.root.empty()) throw DatasetFault("root", "expected the folder of " + four_files + ", plain or .gz");
  const Source source{context.root, "put " + four_files + " there, plain or .gz"};
  Files train = read_split(source, "train");
  Files test = read_split(source, "t10k");
  const auto labels = train.labels.values();
  const int64_t seen = 1 + *std::max_element(labels.begin(), labels.end());
  return make_splits(std::move(train), std::move(test), pixels, numbered(classes == 0 ? seen : classes));
}

}  // namespace ddprun::data
