// fetch: downloads of published data sets. It pins what each file must be, and brings it whole and verified, or not at
// all; what the files hold is data/'s concern.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::fetch {

// A file as its publisher gives it out: kept as it is, archives and .gz included.
struct RemoteFile {
  std::string name;
  int64_t bytes = 0;
  std::string sha256;  // 64 hexadecimal digits, lower case
};

struct DataSet {
  std::string name;
  std::string root;                // where it goes unless the user says otherwise; relative to the current folder
  bool found_in_root = true;       // whether data.name = `name` looks in `root` when data.root is left out
  std::vector<std::string> bases;  // a file's URL is a base and its name; the later ones serve when the first does not
  std::vector<RemoteFile> files;
};

// All that `ddprun data fetch` knows.
const std::vector<DataSet>& catalogue();

std::vector<std::string> data_set_names();

// Throws Error(usage), which names the nearest, for a data set that is not in the catalogue.
const DataSet& find_data_set(const std::string& name);

}  // namespace ddprun::fetch
