// What a rank is doing. Error messages name the phase, the launcher shows it, and a trace has a span for each phase.
#pragma once

#include <cstdint>

namespace ddprun {

enum class Phase : int32_t {
  start,
  rendezvous,
  setup,
  data,
  forward,
  backward,
  allreduce,
  broadcast,
  barrier,
  optimizer,
  evaluate,
  checkpoint,
  done
};

constexpr const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::start: return "start";
    case Phase::rendezvous: return "rendezvous";
    case Phase::setup: return "setup";
    case Phase::data: return "data";
    case Phase::forward: return "forward";
    case Phase::backward: return "backward";
    case Phase::allreduce: return "allreduce";
    case Phase::broadcast: return "broadcast";
    case Phase::barrier: return "barrier";
    case Phase::optimizer: return "optimizer";
    case Phase::evaluate: return "evaluate";
    case Phase::checkpoint: return "checkpoint";
    case Phase::done: return "done";
  }
  return "unknown";
}

}  // namespace ddprun
