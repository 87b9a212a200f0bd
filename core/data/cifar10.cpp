#include "data/builtin.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "data/byte_file.hpp"

namespace ddprun::data {
namespace {

constexpr std::size_t pixel_bytes = 3 * 32 * 32;
constexpr std::size_t record_bytes = 1 + pixel_bytes;
constexpr std::size_t most_file_bytes = std::size_t{256} << 20;  // all of CIFAR-10 is 184 MB
constexpr std::size_t most_archive_bytes = std::size_t{1} << 30;

const std::vector<std::string> class_names = {"airplane", "automobile", "bird",  "cat",  "deer",
                                              "dog",      "frog",       "horse", "ship", "truck"};
const std::string folder = "cifar-10-batches-bin";  // in the archive, and where users unpack it
const std::string archive_name = "cifar-10-binary.tar.gz";

using Files = std::map<std::string, std::vector<uint8_t>>;  // name -> records

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

// Finds the files in root or in the folder that the archive unpacks to. Adds the others to `missing`.
Files read_plain_files(const std::filesystem::path& root, const std::vector<std::string>& names,
                       std::vector<std::string>& missing) {
  Files files;
  for (const std::string& name : names) {
    if (files.contains(name)) continue;
    const std::string path = find_file({(root / name).string(), (root / folder / name).string()});
    if (path.empty()) {
      missing.push_back(name);
    } else {
      files[name] = read_records(path);
    }
  }
  return files;
}

void add_archived_files(const std::string& archive, const std::vector<std::string>& names, Files& files) {
  std::vector<std::string> members;
  for (const std::string& name : names) members.push_back(folder + "/" + name);
  auto found = read_members(archive, members, {most_file_bytes, most_archive_bytes});
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto member = found.find(members[i]);
    if (member == found.end()) throw InvalidDataset("root", archive + ": holds no member " + members[i]);
    check_cifar10_records(member->second, archive + ": " + members[i]);
    files[names[i]] = std::move(member->second);
  }
}

Files read_files(const std::string& root, const std::string& advice, const std::vector<std::string>& names) {
  check_root(root, advice);
  std::vector<std::string> missing;
  Files files = read_plain_files(root, names, missing);
  if (missing.empty()) return files;
  const std::string archive = (std::filesystem::path(root) / archive_name).string();
  if (find_file({archive}).empty()) {
    throw InvalidDataset("root", "found neither " + missing[0] + " nor " + missing[0] + ".gz in " + root + " or " +
                                     (std::filesystem::path(root) / folder).string() + ", nor " + archive + "; " +
                                     advice + "; or name files that are there in options.train and options.test");
  }
  add_archived_files(archive, missing, files);
  return files;
}

// The images and labels of the files, in order. Frees a file when no later list needs it.
ByteImages take(Files& files, const std::vector<std::string>& names, const std::vector<std::string>& later) {
  ByteImages images{3, 32, 32, {}, {}};
  std::size_t records = 0;
  for (const std::string& name : names) records += files.at(name).size() / record_bytes;
  images.pixels.reserve(records * pixel_bytes);
  images.labels.reserve(records);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::vector<uint8_t>& bytes = files.at(names[i]);
    for (auto record = bytes.begin(); record != bytes.end(); record += record_bytes) {
      images.labels.push_back(*record);
      images.pixels.insert(images.pixels.end(), record + 1, record + record_bytes);
    }
    const auto needed = [&](auto begin, auto end) { return std::find(begin, end, names[i]) != end; };
    const auto after = names.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    if (!needed(after, names.end()) && !needed(later.begin(), later.end())) files.erase(names[i]);
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
  const auto train = file_names(options, "train");
  const auto test = file_names(options, "test");
  const ImageSplitOptions image = read_image_split_options(options, 3);
  const std::string root = context.root.empty() ? kCifar10Root : context.root;

  std::vector<std::string> names = train;
  names.insert(names.end(), test.begin(), test.end());
  Files files = read_files(root, fetch_advice("cifar10", root, kCifar10Root), names);
  ByteImages train_images = take(files, train, test);
  ByteImages test_images = take(files, test, {});
  return make_image_splits(std::move(train_images), std::move(test_images), image, context.seed, class_names);
}

}  // namespace ddprun::data
