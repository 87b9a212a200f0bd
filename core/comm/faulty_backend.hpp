// A backend whose allreduces go wrong on purpose on one rank, for the config's table [faults].
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "comm/flight_recorder.hpp"
#include "ddprun/comm_backend.hpp"

namespace ddprun::comm {

enum class CommFault {
  delay,  // sleeps before each collective, from the step on
  drop,   // leaves out the first allreduce of the step
  shape,  // calls the first allreduce of the step with one element less
  dtype,  // calls it with integers of the same size
  op,     // calls it with the maximum
  order   // gives it the index of the next bucket: as if two buckets of the same shape were swapped
};

struct FaultSettings {
  CommFault kind = CommFault::delay;
  int64_t step = 1;  // of the training, from 1
  std::chrono::duration<double> sleep{0};
};

// Passes every call on to `inner`, and makes the fault. `recorder` says which step it is.
std::unique_ptr<CommBackend> faulty(std::unique_ptr<CommBackend> inner, const FaultSettings& fault,
                                    std::shared_ptr<const FlightRecorder> recorder);

}  // namespace ddprun::comm
