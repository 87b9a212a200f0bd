// The options of `ddprun compare` and `ddprun tune` that say how runs are made. Only their main.cpp includes this file.
#pragma once

#include "cli/console/command_line.hpp"
#include "cli/console/program.hpp"
#include "tools/compare/compare.hpp"

namespace ddprun::compare {

inline void add_running_options(CLI::App& to, Running& running) {
  to.add_option("--timeout", running.timeout, "The time limit of one run. 0 means that there is none.")
      ->type_name("SECONDS")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  to.add_option("--output", running.output,
                "Write the results into a new folder in this one. The default is experiment.output.")
      ->type_name("DIR");
  auto* quiet = to.add_flag("-q,--quiet", running.quiet, "Print only the results.");
  to.add_flag("-v,--verbose", running.verbose, "Print the output of the runs as well.")->excludes(quiet);
  console::add_plugin_path(to, running.plugin_paths);
}

}  // namespace ddprun::compare
