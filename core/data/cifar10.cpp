#include "data/builtin.hpp"

#include <filesystem>
#include <utility>

#include "data/byte_file.hpp"

namespace ddprun::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t pixel_bytes = 3 * 32 * 32;
constexpr std::size_t record_bytes = 1 + pixel_bytes;
constexpr std::size_t most_file_bytes = std::size_t{256} << 20;  // all of CIFAR-10 is 184 MB

const std::vector<std::string> class_names = {"airplane", "automobile", "bird",  "cat",  "deer",
                                              "dog",      "frog",       "horse", "ship", "truck"};
const std::string folder = "cifar-10-batches-bin";  // what the archive unpacks to
const std::string archive_name = "cifar-10-binary.tar.gz";

std::vector<std::string> file_names(const DatasetOptions& options, const std::string& key) {
  std::vector<std::string> names = options.texts(key);
  for (const std::string& name : names) {
    if (name.find('/') != std::string::npos) {
      DatasetOptions::refuse(key, "\"" + name + "\": expected names of files in data.root, without a folder");
    }
  }
  return names;
}

// The records of a file, read to its end and checked. Reading one byte more than allowed detects a file that is too
// long, and makes zlib verify the checksum of a compressed file.
std::vector<uint8_t> read_records(const std::string& path) {
  std::vector<uint8_t> bytes;
  ByteFile(path).read(most_file_bytes + 1, bytes);
  if (bytes.size() > most_file_bytes) {
    fail_at(path, most_file_bytes,
            "the file goes on after the " + std::to_string(most_file_bytes) + " bytes that are read");
  }
  check_cifar10_records(bytes, path);
  return bytes;
}

// `archive` is the set as it is published, which is not read.
[[noreturn]] void refuse_packed(const fs::path& archive) {
  const fs::path there = fs::absolute(archive);
  const std::string path = there.string(), root = there.parent_path().string();
  throw InvalidDataset("root",
                       path + ": is packed; unpack it: tar -xf " + path + " -C " + root + "; data.root is that folder");
}

std::string path_of(const fs::path& root, const std::string& advice, const std::string& name) {
  const fs::path unpacked = root / folder;
  const std::string path = find_file({(root / name).string(), (unpacked / name).string()});
  if (!path.empty()) return path;
  if (fs::exists(root / archive_name)) refuse_packed(root / archive_name);
  throw InvalidDataset("root", "found neither " + name + " nor " + name + ".gz in " + root.string() + " or " +
                                   unpacked.string() + "; " + advice +
                                   "; or name files that are there in options.train and options.test");
}

// The images and labels of the files, in order.
ByteImages read_images(const fs::path& root, const std::string& advice, const std::vector<std::string>& names) {
  ByteImages images{3, 32, 32, {}, {}};
  for (const std::string& name : names) {
    const std::vector<uint8_t> bytes = read_records(path_of(root, advice, name));
    images.pixels.reserve(images.pixels.size() + bytes.size());
    for (auto record = bytes.begin(); record != bytes.end(); record += record_bytes) {
      images.labels.push_back(*record);
      images.pixels.insert(images.pixels.end(), record + 1, record + record_bytes);
    }
  }
  return images;
}

}  // namespace

void check_cifar10_records(std::span<const uint8_t> bytes, const std::string& path) {
  if (bytes.empty()) fail_at(path, 0, "the file is empty");
  if (const std::size_t rest = bytes.size() % record_bytes; rest != 0) {
    fail_at(path, bytes.size(),
            "the file ends after " + std::to_string(rest) + " of the " + std::to_string(record_bytes) +
                " bytes of a record");
  }
  for (std::size_t at = 0; at < bytes.size(); at += record_bytes) {
    if (bytes[at] < class_names.size()) continue;
    fail_at(path, at, "label " + std::to_string(bytes[at]) + " in a data set of 10 classes (0 to 9)");
  }
}

Splits open_cifar10(const DatasetContext& context) {
  const DatasetOptions options("cifar10", context, kCifar10Options);
  const auto train = file_names(options, "train"), test = file_names(options, "test");
  const ImageSplitOptions image = read_image_split_options(options, 3);
  const std::string root = context.root.empty() ? kCifar10Root : context.root;

  const std::string advice = fetch_advice("cifar10", root, kCifar10Root);
  if (fs::path(root).filename() == archive_name) refuse_packed(root);
  check_root(root, advice);
  ByteImages train_images = read_images(root, advice, train);
  ByteImages test_images = read_images(root, advice, test);
  return make_image_splits(std::move(train_images), std::move(test_images), image, context.seed, class_names);
}

}  // namespace ddprun::data
