// Writes one rank's files into the run's folder: steps-rank<N>.jsonl, and on rank 0 epochs.jsonl and summary.json.
#pragma once

#include <string>

#include "record/records.hpp"

namespace ddprun::record {

// A file of one JSON object per line, filled through a buffer. One thread. Throws Error(failure) with path and errno.
class LineFile {
 public:
  explicit LineFile(const std::string& path);  // creates it, or empties it
  ~LineFile();                                 // flushes; a fault at this point is logged, not thrown
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // Room to append one line to (with its newline); line_done() writes the buffer out when it has grown large.
  std::string& buffer() { return buffer_; }
  void line_done();
  void flush();

 private:
  void write_all();  // what the buffer holds; the buffer is empty afterwards, whatever happened

  std::string path_;
  std::string buffer_;
  int fd_;
};

// One thread. Every function throws Error(failure) with path and errno when the file cannot be written.
class Recorder {
 public:
  // run_dir exists. Files are created at once, so that a folder that cannot be written is found before the first step.
  Recorder(const std::string& run_dir, int rank);

  // Formats into memory (a few hundred nanoseconds); the file grows at epoch(), flush(), every 256 KiB, and in the
  // destructor.
  void step(const StepRecord& record);
  // Writes the steps so far and, on rank 0, one line of epochs.jsonl. Ranks other than 0 call it too.
  void epoch(const EpochRecord& record);
  // Rank 0 writes summary.json, aside and renamed: flat keys "test.accuracy", "split.comm", "world", ...; other ranks
  // only flush.
  void summary(const Summary& summary);
  void flush();

  const std::string& run_dir() const { return run_dir_; }
  int rank() const { return rank_; }

 private:
  std::string run_dir_;
  int rank_;
  LineFile steps_;
};

// The text of the files, for readers that want no folder: one line without its newline, and an indented object.
std::string to_json_line(const StepRecord& record);
std::string to_json_line(const EpochRecord& record);
std::string to_json(const Summary& summary);

}  // namespace ddprun::record
