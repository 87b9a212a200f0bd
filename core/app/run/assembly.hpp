// run: puts an experiment together from config, plugins, data and ranks, and runs one rank of it. The one module that
// knows all the others.
#pragma once

#include <optional>
#include <vector>

#include "app/run/checks.hpp"
#include "config/experiment.hpp"
#include "data/standardize.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"
#include "plugin/registry.hpp"
#include "train/loop/model_loader.hpp"
#include "train/loop/run_checkpointer.hpp"

namespace ddprun::run {

// The word of a model file's metadata that holds its standardisation.
inline const std::string kStandardize = "standardize";

// Which of a rank's devices holds the model.
std::size_t main_device(const config::Experiment& experiment);

// What a run goes on from, and the line that tells it.
struct Resume {
  train::ResumeFrom from;
  std::string told;
};

// All that an experiment names, found, opened and checked. The model holds its initial weights.
struct Assembly {
  config::Loaded loaded;
  std::optional<plugin::CommPlugin> comm;  // under ddp
  plugin::DatasetPlugin dataset_plugin;    // path empty: one that comes with ddprun
  Splits data;                             // test is there where train.evaluate is true
  plugin::ModelPlugin model_plugin;
  train::ModelPtr model;
  std::vector<train::ModelPtr> replicas;  // under dp: the models of the other devices
  std::optional<Resume> resume;           // by prepare_resume()
  // That both splits have by standardize_data(); of a checkpoint, it is there before.
  std::optional<data::Standardization> standardization;
  // By place_models(): of this rank, under dp of each replica in their order.
  std::vector<torch::Device> devices{torch::kCPU};

  const config::Experiment& experiment() const { return loaded.experiment; }
  // Where the model is, and the batches that it is given.
  torch::Device device() const { return devices.at(main_device(experiment())); }
};

// Loads plugins, opens the data set, makes the model from experiment.seed or model.weights. Communicates with nobody.
// Throws Error: all faults that do not hide one another at once, a line each, with the place in the config; the code is
// that of the first.
Assembly assemble(config::Loaded loaded, const plugin::Registry& registry);

// Cores that this process may use (its affinity mask).
int usable_cores();

// This rank's part of the batch. Throws Error(usage) when the ranks do not divide a global batch, or where it has fewer
// samples than train.accumulate.
int64_t rank_batch(const config::Loaded& loaded, int world);

}  // namespace ddprun::run
