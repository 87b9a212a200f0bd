// The images in a folder and their classes: one folder per class, as in torchvision's ImageFolder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::image_folder {

struct Picture {
  std::string path;
  int64_t target = 0;  // index of its class in Folder::classes
};

struct Folder {
  std::vector<std::string> classes;  // names of the class folders of the training split, sorted
  std::vector<Picture> train;
  std::vector<Picture> test;  // empty without a test split
};

// Finds <root>/train/<class>/ and <root>/test/<class>/, or <root>/val/<class>/ if there is no test/. A root without any
// of the three is itself the training split. The images of a class are all files below its folder whose names end in
// .png, .jpg or .jpeg, in any case. Classes and files are in bytewise order of names, files in subfolders ordered by
// the subfolder first. This is the order of ImageFolder, so indices and targets are equal. Follows links, also out of
// the root, but not in cycles. Opens no file. Throws InvalidDataset("root").
Folder scan(const std::string& root);

}  // namespace ddprun::image_folder
