#include "comm/over_store.hpp"

#include <utility>

namespace ddprun::comm {

std::function<std::vector<std::string>(std::string_view)> gather_over(Store& store, std::string name, int rank,
                                                                      int size, std::chrono::milliseconds timeout) {
  return [&store, name = std::move(name), rank, size, timeout, round = 0](std::string_view value) mutable {
    return store.allgather(name + "-" + std::to_string(round++), rank, size, value, timeout);
  };
}

std::unique_ptr<PluginBackend> join_over(Store& store, const ddprun_comm_plugin& plugin, JoinOptions options) {
  options.allgather = gather_over(store, "join", options.rank, options.size, options.deadline);
  return join(plugin, options);
}

}  // namespace ddprun::comm
