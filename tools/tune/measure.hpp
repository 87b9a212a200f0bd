// Measures what the model needs: runs of the config, and benchmarks of its links.
#pragma once

#include <string>

#include "config/experiment.hpp"
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

// On host 0: starts the children, with their results in a new folder. With settings_of(experiment), the expected step
// is the recorded one, if the model takes no longer by itself. Throws as Session::run(), and before anything starts
// Error(plugin) for an unknown backend, and Error(usage) for an unknown algorithm.
Measurement measure(const Request& request, const config::Experiment& experiment, Session& session);

// A line about what happens now, unless --quiet is given.
void announce(const Request& request, const std::string& what);

}  // namespace ddprun::tune
