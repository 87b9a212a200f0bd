// Reads a run's folder: of a run that completed, was killed, or ran out of disk space; and its collectives.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "comm/flight_recorder.hpp"
#include "ddprun/records.hpp"

namespace ddprun::tools {

// A run, from its folder.
struct Run {
  bool has_summary = true;  // false: it is under way, failed or was killed
  std::string dir;          // as the caller gave it
  std::string config;       // path of the resolved config.toml
  record::Summary summary;
  std::vector<record::EpochRecord> epochs;             // in order; empty if the run had no complete epoch
  std::vector<std::vector<record::StepRecord>> steps;  // by rank, for all ranks
  std::vector<std::vector<record::GpuRecord>> gpus;    // by rank; empty for a run on CPUs
  std::map<std::string, std::string> environment;      // environment.json, numbers as text
};

// All of these throw Error(usage): one line with the file and, for .jsonl, the line: "<dir>/steps-rank0.jsonl:17: ...".
// Errors are: a missing file, text that is not JSON, a key of a wrong type, and a last line without newline, which a
// killed run leaves. An unknown key is ignored, and an absent one leaves the member at its "not measured" value.
// Thread-safe.

// The whole folder. A run without summary.json did not complete, which is an error that says so.
Run read_run(const std::string& dir);

// As read_run(); of a run without summary.json, which is under way or was killed, what its files hold so far. An
// incomplete last line is then left out. `steps` ends at the last step that all ranks have recorded, and `summary` has
// the figures that follow from steps and epochs. Ranks whose files are on another host's disk are missing.
Run read_run_so_far(const std::string& dir);

// The steps of the rank with the largest total time from the step with this index on. `run` has the steps of a rank.
const std::vector<record::StepRecord>& slowest_rank(const Run& run, std::size_t first = 0);

// The load of the run's host when it started, the mean of one minute, such as "0.52"; "" if it is not known.
std::string load_at_start(const Run& run);

// "the run is under way or ended without a summary: its figures go to step 120"; "" for a complete run.
std::string state_of(const Run& run);

// Single files.
record::Summary read_summary(const std::string& dir);
std::map<std::string, std::string> read_environment(const std::string& dir);

// parity-rank<N>.jsonl of the given number of ranks, by rank. Empty if the run did not log it (log.parity_steps = 0).
std::vector<std::vector<record::ParityRecord>> read_parity(const std::string& dir, int ranks);

// gpus-rank<N>.jsonl of the given number of ranks, by rank, in step order. Empty for a run on CPUs.
std::vector<std::vector<record::GpuRecord>> read_gpus(const std::string& dir, int ranks);

// collectives-rank<N>.json. The content of a file, which may be any text; `path` is for messages. Throws Error(usage).
comm::RankCollectives parse_collectives(const std::string& text, const std::string& path);

// By rank, without the ranks that have no file. Throws Error(usage) for a damaged file.
std::map<int64_t, comm::RankCollectives> read_collectives(const std::string& run_dir);

}  // namespace ddprun::tools
