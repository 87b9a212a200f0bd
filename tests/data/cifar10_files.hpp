// Small CIFAR-10 files for tests, valid and invalid.
#pragma once

#include <filesystem>
#include <string>

#include "data/idx_files.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::testing {

// `count` records: record i has the label (first + i) % 10, and planes of the values i, i + 1 and i + 2.
inline std::string records(int count, int first = 0) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    bytes += static_cast<char>((first + i) % 10);
    for (int plane = 0; plane < 3; ++plane) bytes += std::string(1024, static_cast<char>(i + plane));
  }
  return bytes;
}

inline const std::vector<std::string> cifar10_train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                                       "data_batch_4.bin", "data_batch_5.bin"};
inline const std::string cifar10_test = "test_batch.bin";
inline const std::string cifar10_archive = "cifar-10-binary.tar.gz";
inline const std::string cifar10_folder = "cifar-10-batches-bin";

// A folder with 3 records in each training file and 2 in the test file, or an empty one for a test to fill.
class Cifar10Folder : public TempDir {
 public:
  explicit Cifar10Folder(bool filled = true) {
    if (!filled) return;
    int first = 0;
    for (const std::string& name : cifar10_train) write(name, records(3, first++));
    write(cifar10_test, records(2));
  }
  std::string root() const { return path().string(); }
  std::string file(const std::string& name) const { return (path() / name).string(); }
};

}  // namespace ddprun::testing
