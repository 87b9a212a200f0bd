// The adapter from a plugin's C table to CommBackend: status codes become errors with the plugin's own words.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/comm_backend.hpp"
#include "ddprun/plugin/comm_plugin.h"

namespace ddprun::comm {

struct JoinOptions {
  int rank = 0;
  int size = 1;
  int device = -1;                             // CUDA ordinal, or -1 for host memory
  std::chrono::milliseconds deadline{30'000};  // for joining, and for one collective
  std::string algorithm = "auto";
  bool deterministic = false;                    // the order of summation must not vary from run to run
  std::map<std::string, std::string> options{};  // comm.options, as text
  // The value of every rank in rank order, out of band; called by the joining thread, during join only. May throw: that
  // exception then leaves join.
  std::function<std::vector<std::string>(std::string_view)> allgather{};
  // (optional) Raised by whoever wants to end a join under way; abort() of the backend raises it too.
  std::shared_ptr<std::atomic<int32_t>> abort_flag{};
};

// What a plugin declares.
Capabilities capabilities_of(const ddprun_comm_plugin& plugin);

// What is wrong with asking this plugin for an algorithm over buffers in such memory: `expected "auto", "ring" or
// "tree" (did you mean "ring"?)`; nothing where it is "auto" or declared for it. Creates nothing, so that a config can
// be checked without ranks.
std::optional<std::string> algorithm_error(const ddprun_comm_plugin& plugin, const std::string& algorithm,
                                           Memory memory);

// What is wrong with giving this plugin buffers in host or in CUDA memory, with what to do, as text behind the name of
// the key comm.backend; nothing where it takes them. `staged`: copies through page-locked host memory are allowed.
std::optional<std::string> memory_error(const ddprun_comm_plugin& plugin, Memory memory, bool staged);

// Where the buffers are that this plugin is given for tensors in `memory`: in the host's where those of a GPU are to be
// copied through it (`staged`) and the plugin takes it.
Memory memory_given(const ddprun_comm_plugin& plugin, Memory memory, bool staged);

// Joins all ranks into a communicator of the plugin, whose table outlives it. Blocks, at most options.deadline.
// Requests and allocations keep the communicator alive. Throws Error(plugin) where the plugin refuses the options or
// breaks its contract, Error(rendezvous) where a rank does not come or is lost, Error(failure) for the rest.
std::unique_ptr<CommBackend> join(const ddprun_comm_plugin& plugin, const JoinOptions& options);

}  // namespace ddprun::comm
