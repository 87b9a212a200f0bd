// The faults of the config's table [faults]: what one rank does wrong on purpose.
#pragma once

#include <memory>
#include <vector>

#include "cli/config/experiment.hpp"
#include "comm/flight_recorder.hpp"
#include "ddprun/comm_backend.hpp"
#include "train/loop/callback.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::run {

// A callback that makes a fault in forward or backward; null if this rank makes none there.
std::unique_ptr<train::Callback> fault_of(const config::Experiment::Faults& fault, int rank,
                                          const std::vector<train::NamedTensor>& parameters);

// `backend`, or a backend that makes a fault in a collective if this rank makes one there.
std::unique_ptr<CommBackend> with_fault(std::unique_ptr<CommBackend> backend, const config::Experiment::Faults& fault,
                                        const std::shared_ptr<const comm::FlightRecorder>& recorder);

}  // namespace ddprun::run
