// What each of ddprun's own tools does, for its help and for that of `ddprun`, which then need not start the tools.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace ddprun::console {

struct OwnTool {
  std::string_view name;
  std::string_view about;
};

inline constexpr std::array kOwnTools{
    OwnTool{"bench", "Measure collectives, and compare backends and algorithms."},
    OwnTool{"compare", "Compare training runs: how fast, how sure, and whether they learn the same."},
    OwnTool{"conformance", "Test a plugin against its contract."},
    OwnTool{"data", "Download data sets, and show their content."},
    OwnTool{"doctor", "Examine this host: plugins, cores, memory, GPUs, network and limits."},
    OwnTool{"export", "Write the records of a run as CSV or for TensorBoard."},
    OwnTool{"new", "Write the project of a new plugin that builds, passes its conformance suite and trains."},
    OwnTool{"predict", "Predict the speed on more hosts, from a run and measured links."},
    OwnTool{"report", "Write a page with charts of runs or benchmarks."},
    OwnTool{"sweep", "Try an experiment with many settings, and rank them."},
    OwnTool{"tune", "Choose algorithm, bucket sizes and compression for an experiment, and verify them."},
};

// "" for a tool of somebody else.
constexpr std::string_view about_tool(std::string_view name) {
  for (const OwnTool& tool : kOwnTools) {
    if (tool.name == name) return tool.about;
  }
  return "";
}

}  // namespace ddprun::console
