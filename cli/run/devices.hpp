// What a rank uses of its host: devices, compute threads and memory, from [launch] of the config.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "cli/config/experiment.hpp"
#include "cli/run/assembly.hpp"
#include "launch/world.hpp"

namespace ddprun::run {

// The devices of this rank: one, or under dp those of its replicas in order. Loads CUDA if the experiment uses it, and
// makes the model's device current. Call it before anything else asks LibTorch for CUDA, so before assemble(). Throws
// as check_devices() does.
std::vector<torch::Device> choose_devices(const config::Loaded& loaded, const launch::World& world);

// Moves the model, or under dp each replica, to its device.
void place_models(Assembly& assembly, const std::vector<torch::Device>& devices);

// Gives this rank, or under dp each of its devices, launch.threads or its fraction of the cores. Returns the number.
int64_t use_threads(const config::Experiment& experiment, const launch::World& world);

// Makes malloc keep freed memory for the next step, which allocates the same sizes again. By default glibc returns
// large blocks and the free end of the heap to the kernel, which then has to find and clear the same pages in every
// step. MALLOC_MMAP_THRESHOLD_ and MALLOC_TRIM_THRESHOLD_ in the environment have precedence. Call it early, before
// there are other threads.
void keep_freed_memory();

}  // namespace ddprun::run
