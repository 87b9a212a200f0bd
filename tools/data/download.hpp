// One published file into a folder: whole and with the right SHA-256, or not at all.
#pragma once

#include <string>
#include <vector>

#include "tools/data/catalogue.hpp"
#include "tools/data/transfer.hpp"

namespace ddprun::fetch {

// Hears how a download goes. Called by the thread that downloads.
class Listener {
 public:
  virtual ~Listener() = default;
  // A source is asked for the first time; the part holds `bytes` already.
  virtual void begins(const std::string& url, int64_t bytes) = 0;
  // The part holds `bytes` now.
  virtual void grows(int64_t bytes) = 0;
  // What is waited for, or went wrong and is tried again.
  virtual void says(const std::string& line) = 0;
};

enum class Outcome {
  downloaded,
  part_was_whole,    // an earlier attempt had left all of it; no source was asked
  already_verified,  // it was in its place
};

// Brings `file` to `<folder>/<file.name>`; makes the folder. A file that is there is read and verified, and never
// written to. Otherwise the bytes go into `<file.name>.part`, after what an earlier attempt has left there, and the
// part is renamed once its SHA-256 is right. Another process that fetches the same file into the same folder is waited
// for. The URLs are tried in turn; a connection that is cut is made again, within the limits. Where the whole has
// another SHA-256, the part is emptied and the next URL tried; but first the same one, if it had not given all of the
// bytes. One thread.
//
// Throws Error(usage) for a file that is there and is not the published one; Error(failure) when no URL gives the file,
// with the reason of each (what is in the part stays for another attempt), and when the disk refuses; Error(interrupted
// or terminated) when it is asked to stop, also while it reads what is there (the part stays).
Outcome download(const RemoteFile& file, const std::string& folder, const std::vector<std::string>& urls,
                 const Limits& limits, Stop& stop, Listener& listener);

}  // namespace ddprun::fetch
