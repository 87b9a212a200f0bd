// The options of a step, from the [train] section.
#pragma once

#include <cstdint>
#include <optional>

#include "train/optim/amp.hpp"
#include "train/optim/schedule.hpp"

namespace ddprun::train {

struct StepOptions {
  int64_t accumulate = 1;  // number of micro-batches per batch
  double clip_norm = 0;    // limit of the gradients' global 2-norm; 0: no limit
  Amp amp = Amp::off;
  bool channels_last = false;        // memory format of batches; the model's weights have it already
  std::optional<Schedule> schedule;  // none: the optimizer's own learning rate throughout
};

}  // namespace ddprun::train
