// Small CIFAR-10 files and tar archives for tests, valid and invalid.
#pragma once

#include <cstdio>
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

struct TarMember {
  std::string name;
  std::string content;
  char type = '0';                    // '0' file, '1' hard link, '2' symbolic link, '3' device, '5' folder
  std::string link = {};              // what a link points to
  std::size_t size = content.size();  // what the header says
};

// A member of a tar archive in the form of POSIX 1003.1-1988 (ustar): a header block, then blocks of content.
inline std::string tar_member(const TarMember& member) {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  const auto octal = [&](std::size_t at, int digits, std::size_t value) {
    char text[16];
    std::snprintf(text, sizeof text, "%0*zo", digits, value);
    put(at, text);
  };
  put(0, member.name);
  octal(100, 7, 0644);
  octal(108, 7, 0);
  octal(116, 7, 0);
  octal(124, 11, member.size);
  octal(136, 11, 0);
  header[156] = member.type;
  put(157, member.link);
  put(257, std::string("ustar\00000", 8));
  put(148, "        ");  // the checksum counts its own field as spaces
  std::size_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  octal(148, 6, sum);
  header[154] = '\0';
  return header + member.content + std::string((512 - member.content.size() % 512) % 512, '\0');
}

inline std::string tar(const std::vector<TarMember>& members) {
  std::string bytes;
  for (const TarMember& member : members) bytes += tar_member(member);
  return bytes + std::string(1024, '\0');
}

inline const std::vector<std::string> cifar10_train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                                       "data_batch_4.bin", "data_batch_5.bin"};
inline const std::string cifar10_test = "test_batch.bin";
inline const std::string cifar10_archive = "cifar-10-binary.tar.gz";
inline const std::string cifar10_folder = "cifar-10-batches-bin";

// The members of the published archive, with 3 records in each training file and 2 in the test file.
inline std::vector<TarMember> cifar10_members() {
  std::vector<TarMember> members = {{cifar10_folder + "/", "", '5'}, {cifar10_folder + "/readme.html", "<html>"}};
  int first = 0;
  for (const std::string& name : cifar10_train) members.push_back({cifar10_folder + "/" + name, records(3, first++)});
  members.push_back({cifar10_folder + "/" + cifar10_test, records(2)});
  return members;
}

// A folder with the same records in plain files, or an empty one for a test to fill.
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
