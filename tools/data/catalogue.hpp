// fetch: downloads of published data sets. It pins each file's checksum, and stores a file whole and verified or not at
// all; the module data reads the files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::fetch {

// A file as published: archives and .gz files are kept as they are.
struct RemoteFile {
  std::string name;
  int64_t bytes = 0;
  std::string sha256;  // 64 hexadecimal digits, lower case
};

struct DataSet {
  std::string name;
  std::string root;                // default folder; relative to the current folder
  bool found_in_root = true;       // `root` is also the default of data.root
  std::vector<std::string> bases;  // base + file name = URL; tried in this order
  std::vector<RemoteFile> files;
};

// All data sets for `ddprun data fetch`.
const std::vector<DataSet>& catalogue();

std::vector<std::string> data_set_names();

// Throws Error(usage) with the nearest name for a data set that is not in the catalogue.
const DataSet& find_data_set(const std::string& name);

}  // namespace ddprun::fetch
