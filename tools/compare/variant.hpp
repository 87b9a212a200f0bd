// What is compared, or swept: one experiment in several variants.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/experiment.hpp"

namespace ddprun::compare {

struct Variant {
  std::string name;                    // short; no two variants have the same
  std::string file;                    // the config that it starts from
  std::vector<std::string> overrides;  // "table.key=value", in turn
  config::Loaded loaded;               // both together, checked
};

// One key and its values: "comm.algorithm=ring,tree". A comma within brackets or quotes parts nothing. Throws
// Error(usage) for anything else, and for a value that comes twice.
struct Vary {
  std::string key;
  std::vector<std::string> values;
};
Vary parse_vary(const std::string& text);

// One variant for each file, named after it. `common` overrides hold for all. Every function that makes variants throws
// Error(usage) with all faults of all variants at once, as config::load tells them.
std::vector<Variant> variants_of_files(const std::vector<std::string>& files, const std::vector<std::string>& common);

// One variant for each list of overrides beyond `common`. Named after their values: "gloo ring"; a value that does not
// speak for itself brings its key: "lr=0.1 bucket_mb=25".
std::vector<Variant> variants_of_overrides(const std::string& file,
                                           const std::vector<std::vector<std::string>>& overrides,
                                           const std::vector<std::string>& common);

// The whole experiment as "table.key" -> value as TOML writes it.
std::map<std::string, std::string> settings_of(const config::Experiment& experiment);

// Processes of a run: launch.nproc under ddp, one core each where it is "auto"; else 1.
int64_t ranks_of(const config::Experiment& experiment);
// What shares the samples of a step: the ranks, or dp's devices.
int64_t workers_of(const config::Experiment& experiment);
// Samples of all ranks in a step.
int64_t global_batch_of(const config::Experiment& experiment);

// A name that a folder can have: what is not a letter, a digit, '.', '_' or '-' becomes '-'.
std::string folder_name(const std::string& name);

}  // namespace ddprun::compare
