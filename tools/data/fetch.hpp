// fetch: downloads of published data sets. It pins each file's checksum, and stores a file whole and verified or not at
// all; the module data reads the files. Progress goes to stderr: on a terminal a bar for each file, otherwise a line at
// its start and its end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/data/transfer.hpp"

namespace ddprun::fetch {

// A file as published, which is kept as it is.
struct RemoteFile {
  std::string name;
  int64_t bytes = 0;
  std::string sha256;                     // 64 hexadecimal digits, lower case
  std::vector<std::string> members = {};  // of an archive: the files that are unpacked, all in one folder of it
};

// Receives the progress of a download, on the thread that downloads.
class Listener {
 public:
  virtual ~Listener() = default;
  // A source is tried for the first time; the part holds `bytes` already.
  virtual void begins(const std::string& url, int64_t bytes) = 0;
  // The part holds `bytes` now.
  virtual void grows(int64_t bytes) = 0;
  // A line about waiting or about a retry.
  virtual void report(const std::string& line) = 0;
};

enum class Outcome {
  downloaded,
  part_was_whole,    // an earlier attempt had left it complete; no download
  already_verified,  // the file existed
};

// Puts `file` at `<folder>/<file.name>`; creates the folder. An existing file is read and verified, never written.
// Otherwise the bytes are appended to `<file.name>.part`, and the part is renamed once its SHA-256 is right. If another
// process fetches the same file into the same folder, it waits for that. The URLs are tried in order; a broken
// connection is retried, within the limits. If the SHA-256 is wrong, the part is emptied and the next URL is tried; if
// this URL had sent only some of the bytes, it is tried again first. One thread.
//
// Throws Error(usage) for an existing file that is not the published one; Error(failure) if no URL works, with the
// reason of each (the part is kept for another attempt), or if the disk fails; Error(interrupted or terminated) when it
// is asked to stop, also while it reads an existing file (the part is kept).
Outcome download(const RemoteFile& file, const std::string& folder, const std::vector<std::string>& urls,
                 const Limits& limits, Stop& stop, Listener& listener);

// Unpacks the members of a tar archive that download() has verified, with the program tar, below `folder`: all files or
// none. Returns a line for the user. Leaves files that are there as they are. Throws Error(usage) if some of them are
// missing; Error(failure) with tar's message; Error(interrupted or terminated) when it is asked to stop. Call it while
// there is one thread.
std::string unpack(const RemoteFile& archive, const std::string& folder);

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

// Downloads missing files, verifies the others, and unpacks archives. Returns one line that says how to use the data
// set in a config. Errors are those of download() and unpack(), and Error(usage) for an invalid mirror. Call it while
// there is one thread.
std::string fetch(const DataSet& set, const FetchOptions& options);

}  // namespace ddprun::fetch
