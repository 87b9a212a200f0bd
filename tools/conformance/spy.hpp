// Watches a plugin at its C table, where ddprun's own classes would hide what it does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.h"

namespace ddprun::conformance::spy {

// A table whose functions call those of `plugin`. One plugin per process; both tables live as long as the process.
const ddprun_comm_plugin& watch(const ddprun_comm_plugin& plugin);

// All of the following is about the calling thread.

// What the plugin did wrong since the last call, one line each: an error without a text, or with several lines.
std::vector<std::string> take_faults();

// The communicator that was joined last, for calls of the plugin's table without ddprun.
ddprun_comm* last_joined();

// As long as this lives, a plugin gets each ddprun_collective as a copy. After the call, `change` gets that copy, which
// the plugin must not read any more; it is kept until the end.
class ChangeAfterCall {
 public:
  explicit ChangeAfterCall(std::function<void(ddprun_collective&)> change);
  ~ChangeAfterCall();
  ChangeAfterCall(const ChangeAfterCall&) = delete;
  ChangeAfterCall& operator=(const ChangeAfterCall&) = delete;
};

}  // namespace ddprun::conformance::spy
