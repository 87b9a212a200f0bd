// `ddprun data info`: the content of a data set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::info {

struct Request {
  std::string data_set;                   // its name, or a plugin's name or path; or
  std::string config;                     // --config: the data set of an experiment
  std::vector<std::string> overrides;     // --set, of the experiment
  std::string root;                       // --root
  std::vector<std::string> options;       // --option key=value
  int64_t seed = 42;                      // --seed
  std::vector<std::string> plugin_paths;  // --plugin-path
  std::string split = "train";            // --split
  int64_t sample = 0;                     // --sample
  int64_t epoch = 0;                      // --epoch
  std::string png;                        // --png
  int64_t scale = 1;                      // --scale
};

// Returns the text to print, or writes the sample into request.png. Throws Error.
std::string show(const Request& request);

}  // namespace ddprun::info
