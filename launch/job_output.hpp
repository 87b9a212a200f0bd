// The output of the ranks: to the launcher's stdout and stderr, and to a log file per rank.
#pragma once

#include <poll.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launch/child.hpp"
#include "launch/screen.hpp"

namespace ddprun::launch {

enum class Stream { out, err };

// Rank 0's bytes pass unchanged; lines of other ranks get the prefix "[rank1] ". Single-threaded.
class JobOutput {
 public:
  // For `ranks` ranks from `first`. Creates log_dir/rank<N>.log for each; "" for no logs. Throws Error(failure).
  JobOutput(int first, int ranks, const std::string& log_dir);

  // Reads at most one buffer of stdout and one of stderr, so that all ranks get their turn. `rank` counts from `first`.
  // False if there is no more at the moment.
  bool read(int rank, Child& child);
  void finish(int rank);  // its end: unfinished lines are written as whole lines

  // A line of the launcher itself, on stderr.
  void print(std::string_view text) { screen(Stream::err).last_line(text); }

  bool full() const;  // read no more output for now
  // For a poll loop: adds the descriptors on which something is waiting to be written.
  void add_to(std::vector<pollfd>& entries) const;
  // Writes what can be written without blocking. Warns once if the output is lost from here on.
  void write_some();

  // Writes everything.
  void flush();
  // After flush(): "stdout: No space left on device" if output was lost. A reader that has closed its pipe has read
  // enough: then "".
  std::string lost() const;

 private:
  struct Partial {
    std::array<std::string, 2> line;  // by Stream: the unfinished line of a rank
  };

  // One screen, or two if stdout and stderr are different files.
  std::vector<Screen*> screens() const;
  Screen& screen(Stream stream) const { return stream == Stream::err && err_ ? *err_ : *out_; }
  bool read(int rank, Stream stream, UniqueFd& pipe);
  void add_bytes(int rank, Stream stream, std::string_view bytes);
  void finish(int rank, Stream stream);
  void log(int rank, std::string_view bytes);
  void emit(int rank, Stream stream, std::string_view line);

  const int first_;
  std::unique_ptr<Screen> out_;
  std::unique_ptr<Screen> err_;  // null if it is the same file as stdout, so that the order of lines is kept
  std::vector<Partial> partial_;
  std::vector<UniqueFd> logs_;
  bool warned_ = false;
};

}  // namespace ddprun::launch
