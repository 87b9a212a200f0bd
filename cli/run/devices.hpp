// The devices of a run, from launch.device and launch.devices.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "cli/config/experiment.hpp"
#include "cli/run/assembly.hpp"
#include "launch/world.hpp"

namespace ddprun::run {

// The number of GPUs for the run. Throws as check_devices() does.
int gpu_count(const config::Loaded& loaded);

// The devices of this rank: one, or under dp those of its replicas in order. Loads CUDA if the experiment uses it, and
// makes the model's device current. Call it before anything else asks LibTorch for CUDA, so before assemble(). Throws
// as check_devices() does.
std::vector<torch::Device> choose_devices(const config::Loaded& loaded, const launch::World& world);

// Moves the model, or under dp each replica, to its device.
void place_models(Assembly& assembly, const std::vector<torch::Device>& devices);

}  // namespace ddprun::run
