// `ddprun report`: its pages, and from its command line to files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/lib/run.hpp"
#include "tools/report/page.hpp"

namespace ddprun::report {

using CollectivesByRank = std::map<int64_t, comm::RankCollectives>;

// Where the ranks of a job diverged, from their files collectives-rank<N>.json.
struct Divergence {
  uint64_t number = 0;  // of the call; without a divergence, of the last call that all have finished
  std::string text;     // a sentence that describes it, without a full stop
};

// The first call that differs between ranks, that some ranks have not started, or that some have not finished, at the
// time of the first file: later files may show later calls. In all functions, `files` must not be empty.
Divergence find_divergence(const CollectivesByRank& files);

// One line: where the ranks diverged, and which ranks have no file.
std::string collectives_line(const CollectivesByRank& files);

// That line, each rank's last collectives, and the collectives around the first divergence.
Section collectives_section(const CollectivesByRank& files);

// Of files of `ddprun bench --json`: for each collective and number of ranks, bandwidth and time over message size,
// with one line per backend and algorithm, and per file. Throws Error(usage) with path and reason if a file cannot be
// read or has other content.
Page bench_page(const std::vector<std::string>& paths);

// Of one run, or of several compared. At least one run. Reads their traces if they have one; throws Error(usage) if a
// trace is damaged.
Page run_page(std::vector<tools::Run> runs);

// Of a folder that has files of collectives and nothing else of a run, for example copies from several hosts.
Page collectives_page(const std::string& run_dir, const CollectivesByRank& files);

// The one of these pages that shows what is at the paths. Throws Error(usage) with the path if it has nothing to
// report, or if runs and other files are mixed.
Page page_of(const std::vector<std::string>& paths);

// Writes page_of() to `out` ("": to report.html in the given folder if it is one, else here), and returns the path. The
// folder of a comparison already has its page: it is copied to `out`. Throws as write_page().
std::string make(const std::vector<std::string>& paths, const std::string& out);

// A run's records as CSV (RFC 4180): a header, one line per record, lines end with CR LF; a figure that was not
// measured is an empty field. Every step of every rank, by rank: "rank", then the keys of steps-rank<N>.jsonl.
std::string steps_csv(const tools::Run& run);
// The keys of epochs.jsonl, except the losses by rank.
std::string epochs_csv(const tools::Run& run);

// Writes the steps to `place`, or into an existing folder steps.csv and epochs.csv, and returns the paths. Throws
// Error(usage) if the run cannot be read, Error(failure) with path and reason if a file cannot be written. Of a run
// without a summary, it writes what is recorded so far, and logs a line that says so.
std::vector<std::string> write_csv(const std::string& run_dir, const std::string& place);

}  // namespace ddprun::report
