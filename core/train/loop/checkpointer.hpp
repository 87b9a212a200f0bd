// Checkpointer: what a trainer hands over of its state, and gets back when a run goes on.
#pragma once

#include <cstdint>

#include "train/loop/position.hpp"

namespace ddprun::train {

// Every rank has one, and calls it in the same places.
class Checkpointer {
 public:
  virtual ~Checkpointer() = default;
  // Once, when the replicas are equal and before the first step: puts back what the run goes on from and says where it
  // stands; Position{} for a run from its beginning. Each rank by itself: it may take its time.
  virtual Position restore() = 0;
  // Right after it, collective: puts back what all ranks have to at once.
  virtual void restore_together() = 0;
  // What this rank keeps of the commit to come. All ranks have returned before save().
  virtual void save_state(const Position& position) = 0;
  // Rank 0: commits the weights after a step, with the number of complete epochs.
  virtual void save(int64_t step, int64_t epochs) = 0;
  // Rank 0: keeps the weights after a step as the best, by its measure's value.
  virtual void save_best(int64_t step, int64_t epochs, double value) = 0;
};

}  // namespace ddprun::train
