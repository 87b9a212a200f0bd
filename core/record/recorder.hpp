// Writes one rank's files into the run's folder: steps-rank<N>.jsonl, gpus-rank<N>.jsonl where it has GPUs, and on rank
// 0 epochs.jsonl and summary.json.
#pragma once

#include <optional>
#include <string>

#include "base/file.hpp"
#include "ddprun/records.hpp"

namespace ddprun::record {

// One thread. Every function throws Error(failure) with path and errno's words when the file cannot be written.
class Recorder {
 public:
  // run_dir exists. Files are created at once, so that a folder that cannot be written is found before the first step.
  Recorder(const std::string& run_dir, int rank);
  // Flushes; a fault at this point is logged, not thrown.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Formats into memory (half a microsecond); the file grows at epoch(), flush(), every 256 KiB, and in the
  // destructor.
  void step(const StepRecord& record);
  // Written at once, a line of gpus-rank<N>.jsonl, which begins with the first.
  void gpu(const GpuRecord& record);
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
  std::string lines_;  // steps that are not in the file yet
  OutputFile steps_;
  std::optional<OutputFile> gpus_;
  std::optional<OutputFile> epochs_;  // rank 0
};

}  // namespace ddprun::record
