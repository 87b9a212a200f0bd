// Joins the ranks of a test through a plugin; the test's own exchange replaces the launcher.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/plugin_backend.hpp"
#include "plugin/registry.hpp"
#include "support/paths.hpp"
#include "testing/ranks.hpp"

namespace ddprun::comm {

inline const ddprun_comm_plugin& fake(const std::string& name) {
  return *plugin::Registry({testing::build_dir() + "/tests/fakes"}).comm(name).table;
}

inline JoinOptions options_of(testing::Rank& rank) {
  JoinOptions options{.rank = rank.rank(), .size = rank.size()};
  options.allgather = [&rank](std::string_view mine) {
    std::string all(mine.size() * static_cast<std::size_t>(rank.size()), '\0');
    rank.allgather(mine.data(), mine.size(), all.data());
    std::vector<std::string> values;
    for (int peer = 0; peer < rank.size(); ++peer) {
      values.push_back(all.substr(static_cast<std::size_t>(peer) * mine.size(), mine.size()));
    }
    return values;
  };
  return options;
}

inline std::unique_ptr<CommBackend> join_good(testing::Rank& rank) {
  return join(fake("good"), options_of(rank));
}

// Options for a world of one, where an allgather is the identity.
inline JoinOptions single_rank_options() {
  JoinOptions options;
  options.allgather = [](std::string_view mine) { return std::vector<std::string>{std::string(mine)}; };
  return options;
}

}  // namespace ddprun::comm
