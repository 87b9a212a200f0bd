// The end of a run that no longer gets better. Torch-free.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "record/records.hpp"

namespace ddprun::train {

struct EarlyStop {
  std::string measure;   // as of metric_of(); "": never
  int64_t patience = 3;  // epochs in a row without an improvement
  double min_delta = 0;  // an epoch improves when its measure is better than the best by more than this
};

// Whether training is to end after this epoch: it is the patience-th in a row that did not improve. To be asked after
// each epoch; what it has to remember lies in `numbers` (Position's). The answer is equal on all ranks, as the epoch's
// figures are. Throws Error(usage) where the epoch has no such measure.
bool gives_up(const EarlyStop& rule, const record::EpochRecord& epoch, std::map<std::string, double>& numbers);

}  // namespace ddprun::train
