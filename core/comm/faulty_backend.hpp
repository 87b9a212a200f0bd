// A backend with faults, for tests: at the k-th collective it is late, fails, or dies.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "comm/comm_backend.hpp"

namespace ddprun::comm {

struct Delay {
  std::chrono::milliseconds time;
};
struct Fail {
  ExitCode code;
  std::string message;
};
struct Die {};  // SIGKILL of the process

struct Fault {
  uint64_t collective = 1;  // counted from 1, over all kinds
  std::variant<Delay, Fail, Die> what;
};

// Serves through `inner`; before the collective that a fault names, the fault happens.
std::unique_ptr<CommBackend> faulty(std::unique_ptr<CommBackend> inner, std::vector<Fault> faults);

}  // namespace ddprun::comm
