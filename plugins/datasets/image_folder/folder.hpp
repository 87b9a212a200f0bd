// Which pictures a folder holds, of which class: one folder for each class, as torchvision's ImageFolder has them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::image_folder {

struct Picture {
  std::string path;
  int64_t target = 0;  // place of its class in Folder::classes
};

struct Folder {
  std::vector<std::string> classes;  // names of the class folders of the training split, sorted
  std::vector<Picture> train;
  std::vector<Picture> test;  // empty where there is no test split
};

// Finds <root>/train/<class>/ and <root>/test/<class>/, or <root>/val/<class>/ where there is no test/; a root without
// any of the three is itself the training split. A class's pictures are the files below its folder whose names end in
// .png, .jpg or .jpeg, case aside. Classes and files come in the order of their names' bytes, files below subfolders by
// the subfolder first: the order of ImageFolder, so that indices and targets are the same. Links are followed, out of
// the root too; they may not lead back. Opens no file. Throws InvalidDataset("root").
Folder scan(const std::string& root);

}  // namespace ddprun::image_folder
