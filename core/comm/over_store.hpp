// Joining and meeting through the job's store: the way in which a training run and a benchmark bootstrap a backend.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/store.hpp"
#include "comm/plugin_backend.hpp"

namespace ddprun::comm {

// An allgather through `store` that can be called any number of times: the n-th call is "<name>-<n>" there. All ranks
// call it alike. Throws as Store::allgather. The store outlives it.
std::function<std::vector<std::string>(std::string_view)> gather_over(Store& store, std::string name, int rank,
                                                                      int size, std::chrono::milliseconds timeout);

// join() with options.allgather through `store`, under "join", and options.deadline.
std::unique_ptr<PluginBackend> join_over(Store& store, const ddprun_comm_plugin& plugin, JoinOptions options);

}  // namespace ddprun::comm
