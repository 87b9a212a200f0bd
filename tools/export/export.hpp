// `ddprun export`: a run's records in formats of others.
#pragma once

#include <string>
#include <vector>

#include "record/read.hpp"

namespace ddprun::exporter {

struct ExportRequest {
  std::string run;          // its folder
  std::string csv;          // a file for the steps; a folder that is there: steps.csv and epochs.csv in it
  std::string tensorboard;  // a folder, made where it is not there
};

// Writes what is asked for and returns the paths. Each file is written whole or not at all, and one of an earlier
// export of this run is replaced. Throws Error(usage) where nothing is asked for or the run cannot be read,
// Error(failure) with path and reason where a file cannot be written.
std::vector<std::string> export_run(const ExportRequest& request);

// An event file's content. Over steps: train/loss (the mean of all ranks' samples), train/lr, train/loss_scale, and the
// slowest rank's time/total with its parts; over epochs (at their last step): the losses and accuracies of epochs.jsonl
// as epoch/... Times are the run's begin and the steps' lengths added up.
std::string event_file(const record::Run& run);

}  // namespace ddprun::exporter
