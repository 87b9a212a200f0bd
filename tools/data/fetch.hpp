// fetch: downloads of published data sets. It pins each file's checksum, and stores a file whole and verified or not at
// all; the module data reads the files. Progress goes to stderr: on a terminal a bar for each file, otherwise a line at
// its start and its end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/data/download.hpp"
#include "tools/data/transfer.hpp"

namespace ddprun::fetch {

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

struct FetchOptions {
  std::string root;    // the folder; empty: the data set's default
  std::string mirror;  // a base that replaces the official ones: http, https or file; or empty
  Limits limits;
};

// Downloads missing files and verifies the others. Returns one line that says how to use the data set in a config.
// Errors are those of download(), and Error(usage) for an invalid mirror. Call it while there is one thread.
std::string fetch(const DataSet& set, const FetchOptions& options);

}  // namespace ddprun::fetch
