// Communication hooks on the reducer of a GradientSync.
#pragma once

#include "ddprun/comm_hooks.hpp"
#include "train/reduce/gradient_sync.hpp"

namespace ddprun::ddp {

// `group` has the backend of `sync`, which uses the hook from its next step on. Call it on all ranks.
void register_comm_hook(train::GradientSync& sync, const Group& group, CommHook hook);

}  // namespace ddprun::ddp
