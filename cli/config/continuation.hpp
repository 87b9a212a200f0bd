// Which keys a run may change when it resumes from a checkpoint.
#pragma once

#include <map>
#include <string>

#include "cli/config/experiment.hpp"

namespace ddprun::config {

// The value of each key, as TOML, by its full name. A key with options has its whole table.
std::map<std::string, std::string> key_values(const Experiment& experiment);

enum class Change {
  free,      // changes no result: folders, times, what is saved and logged
  reported,  // allowed with a warning: the run no longer continues bit for bit
  refused,   // makes it a different run
};
// How a change of this key is treated. An unknown key is free.
Change change_of(const std::string& key);

}  // namespace ddprun::config
