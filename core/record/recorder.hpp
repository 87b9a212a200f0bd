// The records of a run: as JSON text, as the files of a rank, and as totals.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/file.hpp"
#include "ddprun/records.hpp"

namespace ddprun::record {

// The records as JSON text. A value that was not measured has no key, because JSON has no NaN.
// One object on one line, without a newline. Record: StepRecord, EpochRecord, GpuRecord or ParityRecord, where
// "gradient" and "value" are objects.
std::string line_of(const auto& record);

// One indented object with flat keys ("test.accuracy", "split.comm", "learned.weight") and a newline.
std::string to_json(const Summary& summary);

// Writes one rank's files into the run's folder: steps-rank<N>.jsonl, gpus-rank<N>.jsonl if it has GPUs, and on rank 0
// (see lead()) epochs.jsonl and summary.json. Single-threaded. Every function throws Error(failure) with path and
// errno's text if the file cannot be written.
class Recorder {
 public:
  // run_dir must exist. Creates the files immediately, so that a folder without write access is noticed before the
  // first step. continues: for a rank in the place of a dead one, whose steps are kept; it does not lead.
  Recorder(const std::string& run_dir, int rank, bool continues = false);
  // Flushes; an error at this point is logged, not thrown.
  ~Recorder();

  // Formats into memory (two microseconds). The file is written in the first call after a second, so that the run can
  // be watched, and a kill loses a second at most; also in epoch(), in flush(), every 256 KiB, and in the destructor.
  void step(const StepRecord& record);
  // Written immediately, as a line of gpus-rank<N>.jsonl. The first one creates the file.
  void gpu(const GpuRecord& record);
  // Writes the buffered steps and, on rank 0, one line of epochs.jsonl. All ranks call it. An epoch that is there
  // already is left out, because ranks that go on after a death may end an epoch twice.
  void epoch(const EpochRecord& record);
  // The same with its line_of(); "" for none. Any rank.
  void epoch_line(const std::string& line);
  // Rank 0 writes summary.json atomically, with flat keys "test.accuracy", "split.comm", "world", ... Other ranks only
  // flush.
  void summary(const Summary& summary);
  void flush();
  // Whether this rank writes epochs.jsonl and summary.json from now on. At first, rank 0 does.
  void lead(bool leads);

  const std::string& run_dir() const { return run_dir_; }
  int rank() const { return rank_; }

 private:
  std::string run_dir_;
  int rank_;
  std::string lines_;  // steps that are not written yet
  std::chrono::steady_clock::time_point written_ = std::chrono::steady_clock::now();
  OutputFile steps_;
  std::optional<OutputFile> gpus_;
  std::optional<OutputFile> epochs_;  // if it leads
};

// The totals of a run's steps, and the averages that follow from them.
struct RunTotals {
  StepRecord sums;     // samples and times; the other members are unused
  double seconds = 0;  // of training, between two barriers

  void add(const StepRecord& step);
  // The average times per step, and the throughput for `samples` of all ranks. steps > 0.
  Summary summary(int64_t steps, double samples) const;
};

// On rank 0 of a program that records itself: config.toml, with what tools compare between runs, and summary.json.
// batch: of a rank. half: the program has 16-bit numbers.
void write_program(Recorder& recorder, const Summary& seen, int64_t batch, int64_t threads, bool half);

}  // namespace ddprun::record
