// Which devices a run has, by launch.device and launch.devices.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "app/run/assembly.hpp"
#include "config/experiment.hpp"
#include "launch/world.hpp"

namespace ddprun::run {

// How many GPUs this machine has for the run. As check_devices().
int gpu_count(const config::Loaded& loaded);

// The devices of this rank: one, or under dp those of its replicas in their order. Loads CUDA where the experiment asks
// for it, and makes the device that holds the model the current one. Before anything else that asks LibTorch for CUDA,
// so before assemble(). Throws as check_devices() does.
std::vector<torch::Device> choose_devices(const config::Loaded& loaded, const launch::World& world);

// Moves the model, under dp each replica, to its device.
void place_models(Assembly& assembly, const std::vector<torch::Device>& devices);

}  // namespace ddprun::run
