// The command's observers: records, console output, faults on purpose, and the launcher's progress table.
#pragma once

#include <torch/torch.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/run/assembly.hpp"
#include "comm/flight_recorder.hpp"
#include "ddprun/comm_backend.hpp"
#include "ddprun/error.hpp"
#include "launch/progress.hpp"
#include "launch/world.hpp"
#include "record/recorder.hpp"
#include "train/loop/observer.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::run {

// The observers of this rank besides its LauncherLink, tracer and parity log, in call order. The recorder must outlive
// them.
std::vector<std::unique_ptr<train::Observer>> make_observers(const Assembly& assembly, const launch::World& world,
                                                             const std::vector<train::NamedTensor>& parameters,
                                                             record::Recorder& recorder);

// What one rank does wrong on purpose, from [faults] of the config: an observer that makes a fault in forward or
// backward; null if this rank makes none there.
std::unique_ptr<train::Observer> fault_of(const config::Experiment::Faults& fault, int rank,
                                          const std::vector<train::NamedTensor>& parameters);

// `backend`, or a backend that makes a fault in a collective if this rank makes one there.
std::unique_ptr<CommBackend> with_fault(std::unique_ptr<CommBackend> backend, const config::Experiment::Faults& fault,
                                        const std::shared_ptr<const comm::FlightRecorder>& recorder);

// Reports the current step and phase to the launcher, and the step to the recorder of collectives. From the first step,
// a signal to stop is only recorded (launch/signals.hpp).
class LauncherLink final : public train::Observer {
 public:
  // table: where the launcher, or the link between the ranks, reads the progress; null for one rank. recorder: may be
  // null.
  LauncherLink(int local_rank, launch::ProgressTable* table, comm::FlightRecorder* recorder)
      : local_rank_(local_rank), table_(table), recorder_(recorder) {}

  void on_phase(Phase phase, int64_t step, int bucket) override;
  void on_step_end(const record::StepRecord& record, int64_t step_of_epoch, const train::LoopState& state) override;

  // Whether a signal to this process or the launcher requests a stop: as train::AgreementOptions::stop_requested.
  ExitCode stop_requested() const;

  // The current step and phase for error messages: "step 57 phase backward".
  std::string where() const { return launch::text(progress_); }

 private:
  const int local_rank_;
  launch::ProgressTable* const table_;
  comm::FlightRecorder* const recorder_;
  launch::Progress progress_;
  std::array<double, 3> own_times_{};  // of the last steps, in seconds, without waiting for other ranks
  std::size_t steps_ = 0;
};

}  // namespace ddprun::run
