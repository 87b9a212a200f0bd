// Measures what the model needs: runs of the config, and benchmarks of its links.
#pragma once

#include <string>

#include "cli/config/experiment.hpp"
#include "tools/tune/model.hpp"
#include "tools/tune/request.hpp"
#include "tools/tune/session.hpp"

namespace ddprun::tune {

struct Measurement {
  std::string name;    // of the run: model and data
  std::string folder;  // new: tune-<time>, with runs/ and logs/
  int64_t steps = 0;   // of each run, but the first
  Basis basis;
};

// On host 0, in the main thread: runs the children one after another, with their results in a new folder. For each
// recorded backend and compression, `per_byte` of the basis makes the expected step equal to the recorded one, or is 0
// if the expected step is already longer. Throws as Session::run(). Before anything starts, throws Error(plugin) for an
// unknown backend, and Error(usage) for an unknown algorithm.
Measurement measure(const Request& request, const config::Experiment& experiment, Session& session);

// A line about what happens now, unless --quiet is given.
void announce(const Request& request, const std::string& what);

}  // namespace ddprun::tune
