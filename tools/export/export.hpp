// `ddprun export`: a run's records in other formats.
#pragma once

#include <string>
#include <vector>

#include "tools/lib/run.hpp"

namespace ddprun::exporter {

// Records as CSV (RFC 4180): a header, one line per record, lines end with CR LF; a figure that was not measured is an
// empty field.
// Every step of every rank, by rank: "rank", then the keys of steps-rank<N>.jsonl.
std::string steps_csv(const tools::Run& run);
// The keys of epochs.jsonl, except the losses by rank.
std::string epochs_csv(const tools::Run& run);

struct ExportRequest {
  std::string run;          // its folder
  std::string csv;          // a file for the steps; or an existing folder: steps.csv and epochs.csv in it
  std::string tensorboard;  // a folder, created if missing
};

// Writes the requested files and returns their paths. Each file is written whole or not at all, and replaces the one of
// an earlier export of this run. Throws Error(usage) if nothing is requested or the run cannot be read, Error(failure)
// with path and reason if a file cannot be written. Of a run without a summary, it exports what is recorded so far, and
// logs a line that says so.
std::vector<std::string> export_run(const ExportRequest& request);

// The content of an event file. Over steps: train/loss and train/accuracy (over the samples of all
// ranks), train/throughput (samples of all ranks by the slowest rank's time), train/lr, train/loss_scale, and the
// slowest rank's time/total with its parts; over epochs (at their last step): the losses and accuracies of epochs.jsonl
// as epoch/... A time is the run's start plus the durations of the steps before.
std::string event_file(const tools::Run& run);

}  // namespace ddprun::exporter
