#include "picture.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "ddprun/plugin/dataset_plugin.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun::image_folder {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const std::string& reason) {
  throw InvalidDataset("root", path.string() + ": " + reason);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;  // an entry that cannot be read is not a folder here; opening it reports the error
  return fs::is_directory(path, ignored);
}

std::vector<fs::directory_entry> entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> found;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) found.push_back(*at);
  if (error) refuse(folder, "cannot read the folder: " + error.message());
  return found;
}

std::vector<std::string> class_folders(const fs::path& split) {
  std::vector<std::string> names;
  for (const auto& entry : entries(split)) {
    if (!is_folder(entry.path())) continue;
    names.push_back(entry.path().filename().string());
    if (printable(names.back()) != names.back()) {
      refuse(entry.path(), "the name of a class must be UTF-8 without control characters");
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Whether a file is a sample. Formats that ImageFolder would read but this data set does not are an error: if they were
// skipped, the indices would differ.
bool is_picture(const fs::path& file) {
  std::string name = file.filename().string();  // ".jpg" has no extension()
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto one_of = [&](const std::vector<std::string>& list) {
    return std::any_of(list.begin(), list.end(), [&](const std::string& ending) { return name.ends_with(ending); });
  };
  if (one_of({".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"})) {
    refuse(file, "image-folder reads PNG and JPEG; convert the picture or move it away");
  }
  return one_of({".png", ".jpg", ".jpeg"});
}

// The images of one class, from its folder and all subfolders.
class ClassWalk {
 public:
  explicit ClassWalk(fs::path top) : top_(std::move(top)) { visit(""); }

  // Sorted bytewise by folder, then by name: the order of sorted(os.walk()).
  std::vector<std::string> paths() {
    std::sort(found_.begin(), found_.end());
    std::vector<std::string> paths;
    for (const auto& [folder, name] : found_) paths.push_back((top_ / folder / name).string());
    return paths;
  }

 private:
  void visit(const fs::path& folder) {
    enter(top_ / folder);
    for (const auto& entry : entries(top_ / folder)) {
      const fs::path name = entry.path().filename();
      if (is_folder(entry.path())) {
        visit(folder / name);
      } else if (is_picture(entry.path())) {
        found_.emplace_back(folder.string(), name.string());
      }
    }
    ancestors_.pop_back();
  }

  // A folder that contains itself through a link.
  void enter(const fs::path& folder) {
    struct stat status {};
    if (stat(folder.c_str(), &status) != 0) refuse(folder, std::strerror(errno));
    const std::pair<dev_t, ino_t> identity(status.st_dev, status.st_ino);
    if (std::find(ancestors_.begin(), ancestors_.end(), identity) != ancestors_.end()) {
      refuse(folder, "a link that leads back to a folder above it");
    }
    ancestors_.push_back(identity);
  }

  const fs::path top_;
  std::vector<std::pair<dev_t, ino_t>> ancestors_;  // the folders from the top to the current one
  std::vector<std::pair<std::string, std::string>> found_;
};

// Appends the images of one class; returns their number.
std::size_t append_class(std::vector<Picture>& pictures, const fs::path& folder, int64_t target) {
  const std::vector<std::string> paths = ClassWalk(folder).paths();
  for (const std::string& path : paths) pictures.push_back({path, target});
  return paths.size();
}

std::vector<Picture> scan_train(const fs::path& split, const std::vector<std::string>& classes) {
  std::vector<Picture> pictures;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (append_class(pictures, split / classes[i], static_cast<int64_t>(i)) > 0) continue;
    refuse(split / classes[i], "a class without pictures (*.png, *.jpg, *.jpeg); fill the folder or remove it");
  }
  return pictures;
}

std::vector<Picture> scan_test(const fs::path& split, const std::vector<std::string>& classes) {
  std::vector<Picture> pictures;
  for (const std::string& name : class_folders(split)) {
    const auto found = std::lower_bound(classes.begin(), classes.end(), name);
    if (found == classes.end() || *found != name) {
      refuse(split / name, "the training split has no such class" + did_you_mean(name, classes));
    }
    append_class(pictures, split / name, found - classes.begin());
  }
  if (pictures.empty()) refuse(split, "holds no pictures; add <class>/*.png (.jpg, .jpeg), or remove the folder");
  return pictures;
}

}  // namespace

Folder scan(const std::string& root) {
  const std::string layout = "expected <class>/*.png (.jpg, .jpeg), or train/<class>/ and test/<class>/ of the same";
  if (root.empty()) throw InvalidDataset("root", "the folder of the pictures; " + layout);
  const fs::path top(root);
  if (!is_folder(top)) refuse(top, "no such folder; " + layout);
  const fs::path test = is_folder(top / "test") ? top / "test" : top / "val";
  const bool has_test = is_folder(test);
  const bool has_train = is_folder(top / "train");
  if (has_test && !has_train) refuse(top, "has " + test.filename().string() + "/ and no train/");
  const fs::path train = has_train ? top / "train" : top;
  Folder folder;
  folder.classes = class_folders(train);
  if (folder.classes.empty()) refuse(train, "holds no class folders; " + layout);
  folder.train = scan_train(train, folder.classes);
  if (has_test) folder.test = scan_test(test, folder.classes);
  return folder;
}

}  // namespace ddprun::image_folder
