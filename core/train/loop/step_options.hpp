// What a step does besides forward, backward and the optimizer: the rest of [train].
#pragma once

#include <cstdint>
#include <optional>

#include "train/optim/amp.hpp"
#include "train/optim/schedule.hpp"

namespace ddprun::train {

struct StepOptions {
  int64_t accumulate = 1;  // micro-batches that a rank's part of the batch is cut into
  double clip_norm = 0;    // limit of the gradients' global 2-norm; 0: none
  Amp amp = Amp::off;
  bool channels_last = false;        // of batches; the model's weights are laid out so already
  std::optional<Schedule> schedule;  // none: the optimizer's own rate throughout
};

}  // namespace ddprun::train
