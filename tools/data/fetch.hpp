// A whole data set, with its progress on stderr: a bar for each file on a terminal, a line at its start and its end
// elsewhere.
#pragma once

#include <string>

#include "tools/data/catalogue.hpp"
#include "tools/data/transfer.hpp"

namespace ddprun::fetch {

struct FetchOptions {
  std::string root;    // the folder; empty: the data set's own
  std::string mirror;  // a base in place of the official ones: http, https or file; empty: none
  Limits limits;
};

// Downloads what is missing and verifies the rest, file by file. Returns one line that says how to use it in a config.
// Errors are those of download(), and Error(usage) for a mirror that is no such URL. Call it while there is one thread.
std::string fetch(const DataSet& set, const FetchOptions& options);

}  // namespace ddprun::fetch
