#include "data/builtin.hpp"

#include <algorithm>
#include <filesystem>

#include "data/byte_file.hpp"
#include "data/idx.hpp"

namespace ddprun::data {
namespace {

namespace fs = std::filesystem;

struct Source {
  std::string root;
  std::string advice;  // what to do if a file is missing
  std::string below;   // where torchvision puts the files, below root; "": nowhere
};

// `split` and `kind`: "train" and "images-idx3-ubyte". Some copies of MNIST have a dot before "idx".
std::string path_of(const Source& source, const std::string& split, std::string kind) {
  const fs::path root(source.root), plain = root / (split + "-" + kind);
  // Kaggle's archive has folders of the same names.
  std::vector<std::string> places = {plain.string(), (plain / plain.filename()).string()};
  kind[kind.find('-')] = '.';
  places.push_back((root / (split + "-" + kind)).string());
  if (!source.below.empty()) places.push_back((root / source.below / plain.filename()).string());
  const std::string path = find_file(places);
  if (!path.empty()) return path;
  throw InvalidDataset("root", "found neither " + plain.string() + " nor " + plain.string() + ".gz; " + source.advice);
}

struct SplitFiles {
  IdxFile images;
  IdxFile labels;
};

SplitFiles read_split(const Source& source, const std::string& split) {
  SplitFiles files{read_idx(path_of(source, split, "images-idx3-ubyte"), 3, "pixels"),
                   read_idx(path_of(source, split, "labels-idx1-ubyte"), 1, "labels")};
  const int64_t images = files.images.header.extents[0];
  const int64_t labels = files.labels.header.extents[0];
  if (images != labels) {
    fail_at(files.labels.path, 4,
            std::to_string(labels) + (labels == 1 ? " label" : " labels") + " for the " + std::to_string(images) +
                (images == 1 ? " image" : " images") + " in " + files.images.path);
  }
  return files;
}

void check_labels(const IdxFile& file, std::size_t classes) {
  const auto labels = file.values();
  const auto wrong = std::find_if(labels.begin(), labels.end(), [&](uint8_t label) { return label >= classes; });
  if (wrong == labels.end()) return;
  const auto offset = file.header.bytes + static_cast<std::size_t>(wrong - labels.begin());
  fail_at(file.path, offset,
          "label " + std::to_string(*wrong) + " in a data set of " + std::to_string(classes) +
              (classes == 1 ? " class (0)" : " classes (0 to " + std::to_string(classes - 1) + ")"));
}

void check_same_shape(const IdxFile& train, const IdxFile& test) {
  for (std::size_t i = 1; i < 3; ++i) {
    const int64_t train_extent = train.header.extents[i];
    const int64_t test_extent = test.header.extents[i];
    if (train_extent == test_extent) continue;
    fail_at(test.path, 4 + 4 * i,
            "images with " + std::to_string(test_extent) + (i == 1 ? " rows" : " columns") + ", where " + train.path +
                " has " + std::to_string(train_extent));
  }
}

std::vector<std::string> numbered(int64_t classes) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

// The values without the header.
std::vector<uint8_t> values_of(IdxFile& file) {
  file.bytes.erase(file.bytes.begin(), file.bytes.begin() + static_cast<std::ptrdiff_t>(file.header.bytes));
  return std::move(file.bytes);
}

ByteImages images_of(SplitFiles& files) {
  const auto& extents = files.images.header.extents;
  return {1, extents[1], extents[2], values_of(files.images), values_of(files.labels)};
}

// No classes: as many as the labels of the training split need.
Splits read_splits(const Source& source, const ImageSplitOptions& options, uint64_t seed,
                   std::vector<std::string> classes) {
  check_root(source.root, source.advice);
  SplitFiles train = read_split(source, "train");
  SplitFiles test = read_split(source, "t10k");
  if (classes.empty()) classes = numbered(1 + *std::ranges::max_element(train.labels.values()));
  check_same_shape(train.images, test.images);
  check_labels(train.labels, classes.size());
  check_labels(test.labels, classes.size());
  return make_image_splits(images_of(train), images_of(test), options, seed, classes);
}

const std::string four_files =
    "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte";

Splits open_named(const std::string& name, const DatasetContext& context, const Source& source,
                  const std::vector<std::string>& classes) {
  const DatasetOptions options(name, context, kMnistOptions);
  return read_splits(source, read_image_split_options(options, 1), context.seed, classes);
}

}  // namespace

Splits open_mnist(const DatasetContext& context) {
  const std::string root = context.root.empty() ? kMnistRoot : context.root;
  const std::string advice = fetch_advice("mnist", root, kMnistRoot) + ", plain or .gz";
  return open_named("mnist", context, {root, advice, "MNIST/raw"}, numbered(10));
}

Splits open_fashion_mnist(const DatasetContext& context) {
  const std::string root = context.root.empty() ? "/usr/share/datasets/fashion-mnist" : context.root;
  const std::string apt = "\"apt-get install dataset-fashion-mnist\"";
  const std::string advice =
      context.root.empty()
          ? apt + " puts it there; or give the root data/fashion-mnist after \"ddprun data fetch fashion-mnist\""
          : fetch_advice("fashion-mnist", root, "data/fashion-mnist") + ", or none after " + apt;
  return open_named(
      "fashion-mnist", context, {root, advice, "FashionMNIST/raw"},
      {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"});
}

Splits open_idx(const DatasetContext& context) {
  const DatasetOptions options("idx", context, kIdxOptions);
  const ImageSplitOptions image = read_image_split_options(options, 1);
  const int64_t classes = options.integer("classes");
  if (context.root.empty()) throw InvalidDataset("root", "expected the folder of " + four_files + ", plain or .gz");
  const Source source{context.root, "put " + four_files + " there, plain or .gz", ""};
  return read_splits(source, image, context.seed, numbered(classes));
}

}  // namespace ddprun::data
