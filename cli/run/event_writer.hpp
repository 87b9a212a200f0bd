// log.tensorboard: an event file of TensorBoard in the run folder, written while the run goes on.
#pragma once

#include <cstdint>
#include <string>

#include "base/file.hpp"
#include "train/loop/callback.hpp"

namespace ddprun::run {

// On rank 0: writes scalars every `log_every` steps and after the last step of an epoch, and those of each epoch. Each
// call writes to the file, so a killed process loses no more than the steps since then. Throws Error(failure) with path
// and errno's text if the file cannot be written.
class EventWriter final : public train::Callback {
 public:
  EventWriter(const std::string& run_dir, int world, int64_t log_every);

  void on_step_end(const record::StepRecord& record, int64_t step_of_epoch, train::LoopState& state) override;
  void on_epoch_end(const record::EpochRecord& record, train::LoopState& state) override;

 private:
  const std::string of_rank0_;  // ends the names of figures that are not those of all ranks
  const int64_t log_every_;
  OutputFile file_;
};

}  // namespace ddprun::run
