// ddprun/plugin/dataset_options.hpp: reads `data.options`, as the data set declares them.
#pragma once

#include <cstdint>
#include <string>

#include "ddprun/plugin/dataset_plugin.hpp"
#include "ddprun/plugin/options.hpp"

namespace ddprun {

// The option `seed` of a data set that draws its samples.
inline constexpr ddprun_option_spec kSeedOption =
    integer_option("seed", nullptr, "0", nullptr, "of what is random; experiment.seed if not given");

class DatasetOptions : public Options {
 public:
  // Throws InvalidDataset that names the option, for the first one that is not as declared.
  DatasetOptions(std::string name, const DatasetContext& context, OptionSpecs specs);

  // That of kSeedOption, or else the experiment's seed.
  uint64_t seed() const;

  // For a data set that reads no files.
  void refuse_root() const;

  [[noreturn]] static void refuse(const std::string& key, const std::string& reason);

 private:
  std::string name_;
  std::string root_;
  uint64_t seed_;
};

}  // namespace ddprun
