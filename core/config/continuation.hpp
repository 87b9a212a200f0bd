// Which keys a run that goes on from a checkpoint may change.
#pragma once

#include <map>
#include <string>

#include "config/experiment.hpp"

namespace ddprun::config {

// The value of each key, as TOML, by its full name. A key of options has its whole table.
std::map<std::string, std::string> key_values(const Experiment& experiment);

enum class Change {
  free,     // changes no number: folders, times, what is kept and told
  told,     // allowed, but the run is then no longer bit for bit the one that it goes on from
  refused,  // makes it another run
};
// What a change of this key is. A key that is not known is free.
Change change_of(const std::string& key);

}  // namespace ddprun::config
