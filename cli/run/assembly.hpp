// Everything that an experiment names.
#pragma once

#include <optional>
#include <vector>

#include "cli/config/experiment.hpp"
#include "data/sampler.hpp"
#include "data/standardize.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"
#include "elastic/tree.hpp"
#include "plugin/registry.hpp"
#include "train/loop/checkpointing.hpp"
#include "train/loop/model_loader.hpp"

namespace ddprun::run {

// The key of the standardization in a model file's metadata.
inline const std::string kStandardize = "standardize";

// What a run resumes from, and the line that reports it.
struct Resume {
  train::ResumeFrom from;
  std::string message;
};

// Everything that an experiment names, found, opened and checked. The model has its initial weights.
struct Assembly {
  config::Loaded loaded;
  std::optional<plugin::CommPlugin> comm;  // under ddp
  plugin::DatasetPlugin dataset_plugin;    // its path is empty for a built-in data set
  Splits data;
  data::Split split;  // of data.train, with data.validation; otherwise empty: all samples are trained on
  plugin::ModelPlugin model_plugin;
  train::ModelPtr model;
  std::vector<train::ModelPtr> replicas;  // under dp: the models of the other devices
  std::optional<Resume> resume;           // set by prepare_resume()
  // Of training and test set, set by standardize_data(); from a checkpoint, it is set before.
  std::optional<data::Standardization> standardization;
  // Set by place_models(): this rank's device, or under dp those of the replicas in order.
  std::vector<torch::Device> devices{torch::kCPU};

  const config::Experiment& experiment() const { return loaded.experiment; }
  int64_t train_samples() const {
    return split.train.empty() ? data.train->size() : static_cast<int64_t>(split.train.size());
  }
  // The sets that are evaluated.
  bool has_test() const { return experiment().train.evaluate && data.test != nullptr; }
  bool has_validation() const { return experiment().train.evaluate && !split.validation.empty(); }
  // The device of the model, and of its batches.
  torch::Device device() const { return devices.front(); }
};

// Loads plugins, opens the data set, makes the model from experiment.seed or model.weights. Does not communicate.
// Throws Error with all errors that do not hide one another, one line each, with the location in the config; the exit
// code is that of the first.
Assembly assemble(config::Loaded loaded, const plugin::Registry& registry);

// Opens the data set again, as assemble() does.
void open_data(Assembly& assembly);

bool has_virtual_ranks(const config::Experiment& experiment);
// The number of ranks whose results the training computes: strategy.virtual_ranks, or the world size. And those of them
// that `rank` computes.
int training_ranks(const config::Experiment& experiment, int world);
elastic::Range training_share(const config::Experiment& experiment, int rank, int world);

// The batch size of each of training_ranks(). Throws as config::check_ranks().
int64_t rank_batch(const config::Loaded& loaded, int world);

}  // namespace ddprun::run
