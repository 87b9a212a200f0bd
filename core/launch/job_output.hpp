// What the ranks print: to the launcher's stdout and stderr, and to a log file for each rank.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launch/screen.hpp"
#include "launch/unique_fd.hpp"

namespace ddprun::launch {

enum class Stream { out, err };

// Rank 0's bytes pass as they are; the others' whole lines carry "[rank1] ". One thread.
class JobOutput {
 public:
  // Makes log_dir/rank<N>.log for each rank; "" for no logs. Throws Error(failure).
  JobOutput(int ranks, const std::string& log_dir);

  void feed(int rank, Stream stream, std::string_view bytes);
  void finish(int rank, Stream stream);  // its end: an unfinished line is passed on as a whole one

  // The launcher's own line, on stderr.
  void say(std::string_view text) { screen(Stream::err).last_line(text); }

  // One screen, or two where stdout and stderr are different files.
  std::vector<Screen*> screens() const;
  bool full() const;     // take nothing more for now
  bool crowded() const;  // take only what rank 0 prints

  void flush();

 private:
  struct Partial {
    std::array<std::string, 2> line;  // by Stream; what a rank has printed of a line so far
  };

  Screen& screen(Stream stream) const { return stream == Stream::err && err_ ? *err_ : *out_; }
  void log(int rank, std::string_view bytes);
  void emit(int rank, Stream stream, std::string_view line);

  std::unique_ptr<Screen> out_;
  std::unique_ptr<Screen> err_;  // none where it is the same file as stdout: then the order between them is kept
  std::vector<Partial> partial_;
  std::vector<UniqueFd> logs_;
};

}  // namespace ddprun::launch
