// One experiment in several variants.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/config/experiment.hpp"

namespace ddprun::compare {

struct Variant {
  std::string name;                    // short and unique
  std::string file;                    // the config file
  std::vector<std::string> overrides;  // "table.key=value", in order
  config::Loaded loaded;               // config and overrides, checked
  config::Typed typed = {};            // the overrides that --vary or --change gives
  // Another program than ddprun (program.hpp): `loaded` is then what its first run has recorded of itself.
  std::vector<std::string> command = {};
  std::vector<std::string> environment = {};  // further variables: "NAME=value"
};

// One key and its values: "comm.algorithm=ring,tree". A comma within brackets or quotes does not separate values.
// Throws Error(usage) for anything else, and for a value that is given twice.
struct Vary {
  std::string key;
  std::vector<std::string> values;
};
Vary parse_vary(const std::string& text);

// One variant for each file, with the file's name. `common` overrides apply to all; `ranks` is as in config::load. All
// functions that make variants throw Error(usage) with all errors of all variants at once, as config::load does.
std::vector<Variant> variants_of_files(const std::vector<std::string>& files, const std::vector<std::string>& common,
                                       std::optional<int64_t> ranks = std::nullopt);

// One variant for each list of overrides in addition to `common`. The values are its name: "gloo ring"; a value that is
// unclear without its key is written with it: "lr=0.1 bucket_cap_mb=25". `option`: where the user typed them.
std::vector<Variant> variants_of_overrides(const std::string& file,
                                           const std::vector<std::vector<std::string>>& overrides,
                                           const std::vector<std::string>& common,
                                           std::optional<int64_t> ranks = std::nullopt,
                                           const std::string& option = "--vary");

// Those names. Throws Error(usage) if two variants are the same; `what` is theirs.
std::vector<std::string> names_of_overrides(const std::vector<std::vector<std::string>>& overrides,
                                            const std::string& what);
bool all_differ(const std::vector<std::string>& names);

// The error of a run of this variant, which has all overrides from --set, as the user typed them.
std::string as_typed(const Variant& variant, const std::string& error);

// Without train.epochs and train.steps, so that another length may be added: both on the command line would contradict
// each other.
std::vector<std::string> without_length(std::vector<std::string> overrides);

// Processes of a run: launch.nproc with ddp, one per core if it is "auto"; else 1.
int64_t ranks_of(const config::Experiment& experiment);
// The workers that divide the samples of a step: the ranks, or dp's devices.
int64_t workers_of(const config::Experiment& experiment);
// Samples per step, over all ranks.
int64_t global_batch_of(const config::Experiment& experiment);

// A valid folder name: each character except letters, digits, '.', '_' and '-' becomes '-'.
std::string folder_name(const std::string& name);

// Every combination of the values of texts as in parse_vary(), each as overrides. The last key's values change fastest.
std::vector<std::vector<std::string>> grid_of(const std::vector<std::string>& varied);

// What the settings of variants say about a comparison: whether it is fair, and why their numbers differ.

// The settings that make variants do different work: another global batch, other data (all of data.* except how it is
// loaded), another seed or another length. One line each, such as "data.name: \"mnist\" in a, \"cifar10\" in b". Empty:
// the comparison is fair.
std::vector<std::string> unfair_differences(const std::vector<Variant>& variants);

// Throws Error(usage) with those lines and advice.
void require_fair(const std::vector<Variant>& variants);

// The keys of report::differing_settings(); of programs, those of their overrides.
std::vector<std::string> keys_that_differ(const std::vector<Variant>& variants);

// Both train in float32, gradients included.
bool in_float32(const config::Experiment& a, const config::Experiment& b);

}  // namespace ddprun::compare
