// One request with libcurl, into a part file. It requests what the part misses and rejects any answer that does not
// fit.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/file.hpp"
#include "ddprun/error.hpp"
#include "launch/signals.hpp"

namespace ddprun::fetch {

// The SHA-256 of a file, as 64 hexadecimal digits. It is read piece by piece; an exception from `before_each` piece
// passes through. Throws Error(failure) with path and errno's message.
std::string sha256_of(
    const std::string& path, const std::function<void()>& before_each = [] {});

// A file during its download: `<name>.part` next to its final place, locked against other fetches. One thread. Every
// function throws Error(failure) with path and errno's message if the system refuses.
class PartFile {
 public:
  // Opens or creates `<final_path>.part` and locks it (flock) for the lifetime of the object. Null: another process
  // holds the lock, or has just finished or removed that file: check the folder again.
  static std::unique_ptr<PartFile> lock(const std::string& final_path);

  const std::string& path() const { return file_.path(); }
  int64_t bytes() const { return bytes_; }

  void append(const char* data, size_t bytes);
  // Empties it.
  void restart();
  // Moves it to its final place durably: syncs the file, renames it, syncs the folder.
  void finish();
  // Deletes it. No function may be called after finish() or remove().
  void remove();

 private:
  PartFile(const std::string& final_path, int fd);
  bool still_there() const;

  std::string final_path_;
  OutputFile file_;
  int64_t bytes_ = 0;
};

// "interrupted" or "terminated".
std::string word(ExitCode code);

// While it lives, SIGINT and SIGTERM do not end the process but are noted here. Create it while there is one thread;
// only one thread uses it.
class Stop {
 public:
  // interrupted or terminated, once such a signal has arrived.
  std::optional<ExitCode> asked();
  // Throws Error(interrupted or terminated), with only that word, once it is asked to stop.
  void check();
  // Waits for this time, or until it is asked to stop.
  std::optional<ExitCode> within(std::chrono::milliseconds time);

 private:
  launch::Signals signals_;
  std::optional<ExitCode> asked_;
};

struct Limits {
  std::chrono::milliseconds connect{15'000};  // until connected
  std::chrono::seconds stall{30};             // time without a byte until the connection counts as cut; at least 1
  int attempts = 5;                           // in a row, each with less than `progress`
  int64_t progress = 1 << 20;                 // bytes
  std::chrono::milliseconds backoff{500};     // before the second of them; doubles from one to the next
};

// How a request ended.
struct Ending {
  enum class Kind {
    whole,        // the part holds all the bytes
    cut,          // a connection or a server broke; the part keeps what came, and the next request may continue there
    unreachable,  // no connection came about
    failed,       // the same request would end so again
    stopped,      // by a signal
  };
  Kind kind = Kind::whole;
  std::string reason;  // "HTTP 404", or libcurl's words
};

// Called when bytes have come and once a second: bytes in the part.
using OnBytes = std::function<void(int64_t)>;

// Requests `url` (http, https or file) for what `part` misses of `bytes`: with a Range when it holds some already.
// Redirections are followed, to http and https only; proxies are those of the environment, as curl takes them.
//
// A server that sends the whole file all the same makes the part start again. One that announces another size than
// `bytes` fails before a byte is written, and one that sends more than `bytes` fails there, and the part is emptied.
// Throws Error(failure) where the part cannot be written. One thread.
Ending transfer(const std::string& url, PartFile& part, int64_t bytes, const Limits& limits, Stop& stop,
                const OnBytes& on_bytes);

}  // namespace ddprun::fetch
