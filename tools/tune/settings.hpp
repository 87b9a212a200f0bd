// tune: chooses how gradients are sent, from measured links and a recorded step. This file: what it chooses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/config/experiment.hpp"

namespace ddprun::tune {

// Keys of [comm] and [strategy], with their names.
struct Settings {
  std::string backend, algorithm;
  double bucket_cap_mb = 25;  // MiB
  std::string compression;
  bool operator==(const Settings&) const = default;
};

Settings settings_of(const config::Experiment& experiment);

// One line of a config.
struct Change {
  std::string table, key;
  std::string value;  // as TOML

  std::string override_text() const;  // for --set: "comm.algorithm=ring"
};

// The lines that change `from` into `to`, those of a table together.
std::vector<Change> changes(const Settings& from, const Settings& to);

// The lines as TOML, with the names of their tables.
std::string to_toml(const std::vector<Change>& changes);

// The text of the config at `path` with the overrides and then the changes: every key, no comments, absolute paths.
// `ranks` is as in config::load(), which throws.
std::string changed_config(const std::string& path, std::vector<std::string> overrides,
                           const std::vector<Change>& changes, std::optional<int64_t> ranks = std::nullopt);

}  // namespace ddprun::tune
