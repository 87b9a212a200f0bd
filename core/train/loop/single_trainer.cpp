#include "train/loop/loop_trainer.hpp"

namespace ddprun::train {

std::unique_ptr<Trainer> single_trainer(Parts parts) {
  return std::make_unique<LoopTrainer>(parts);
}

}  // namespace ddprun::train
