// Downloads a whole data set, with progress on stderr: on a terminal a bar for each file, otherwise a line at its start
// and its end.
#pragma once

#include <string>

#include "tools/data/catalogue.hpp"
#include "tools/data/transfer.hpp"

namespace ddprun::fetch {

struct FetchOptions {
  std::string root;    // the folder; empty: the data set's default
  std::string mirror;  // a base that replaces the official ones: http, https or file; or empty
  Limits limits;
};

// Downloads missing files and verifies the others. Returns one line that says how to use the data set in a config.
// Errors are those of download(), and Error(usage) for an invalid mirror. Call it while there is one thread.
std::string fetch(const DataSet& set, const FetchOptions& options);

}  // namespace ddprun::fetch
