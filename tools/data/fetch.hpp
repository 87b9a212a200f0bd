// fetch: downloads of published data sets. It pins each file's checksum, and stores a file whole and verified or not at
// all; the module data reads the files. curl downloads; on a terminal it shows a bar.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::fetch {

// A file as published, which is kept as it is.
struct RemoteFile {
  std::string name;
  int64_t bytes = 0;
  std::string sha256;                     // 64 hexadecimal digits, lower case
  std::vector<std::string> members = {};  // of an archive: the files that are unpacked, all in one folder of it
};

// The SHA-256 of a file, as 64 hexadecimal digits. Throws Error(failure) with path and errno's message.
std::string sha256_of(const std::string& path);

// Puts `file` at `<folder>/<file.name>`; creates the folder. An existing file is read and verified, never written.
// Otherwise curl appends to `<file.name>.part`, and the part is renamed once its SHA-256 is right. If another process
// fetches the same file into the same folder, it waits for that. The URLs are tried in order. If the SHA-256 is wrong,
// the part is emptied; if there was a part before, the same URL is tried again. Call it while there is one thread.
//
// Throws Error(usage) for an existing file that is not the published one; Error(failure) if no URL works, with the
// reason of each (the part is kept for another attempt), or without curl; Error(interrupted or terminated) when it is
// asked to stop while curl runs (the part is kept).
void download(const RemoteFile& file, const std::string& folder, const std::vector<std::string>& urls);

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
};

// Downloads missing files, verifies the others, and unpacks archives. Returns one line that says how to use the data
// set in a config. Errors are those of download() and unpack(), and Error(usage) for an invalid mirror. Call it while
// there is one thread.
std::string fetch(const DataSet& set, const FetchOptions& options);

}  // namespace ddprun::fetch
