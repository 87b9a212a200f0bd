// Reads a run's folder back, whoever wrote it: a run that ended, was killed, or lies on a disk that was full.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ddprun/records.hpp"

namespace ddprun::record {

// A run that ended, as its folder tells it.
struct Run {
  std::string dir;     // as it was given
  std::string config;  // path of the resolved config.toml
  Summary summary;
  std::vector<EpochRecord> epochs;                 // in order; empty for a run of less than an epoch
  std::vector<std::vector<StepRecord>> steps;      // by rank, one for each of the world
  std::vector<std::vector<GpuRecord>> gpus;        // by rank; empty for a run on CPUs
  std::map<std::string, std::string> environment;  // environment.json, numbers as text
};

// All of these throw Error(usage), one line with file and, for .jsonl, line: "<dir>/steps-rank0.jsonl:17: ...". A file
// that is missing, text that is not JSON, a key of another type, and a last line without its newline, which is how the
// file of a killed run ends, are errors; a key that this version does not know is none, and one that is absent gives
// the member's "not measured". Any thread.

// The whole folder. A run without summary.json did not end, and is an error that says so.
Run read_run(const std::string& dir);

// Single files of it, of runs that still go on as well (the caller then leaves out a last line that is being written:
// `growing`).
Summary read_summary(const std::string& dir);
std::vector<EpochRecord> read_epochs(const std::string& dir, bool growing = false);
std::vector<StepRecord> read_steps(const std::string& dir, int rank, bool growing = false);
std::map<std::string, std::string> read_environment(const std::string& dir);

// parity-rank<N>.jsonl of so many ranks, by rank. Empty for a run that was not asked for it (log.parity_steps = 0).
std::vector<std::vector<ParityRecord>> read_parity(const std::string& dir, int ranks);

// gpus-rank<N>.jsonl of so many ranks, by rank, each in the order of its steps. Empty for a run on CPUs.
std::vector<std::vector<GpuRecord>> read_gpus(const std::string& dir, int ranks);

// True when `dir` looks like the folder of a run: it holds a config.toml and steps of rank 0.
bool is_run(const std::string& dir);

}  // namespace ddprun::record
