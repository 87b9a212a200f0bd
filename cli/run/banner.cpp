#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

#include "base/text.hpp"
#include "cli/console/table.hpp"
#include "cli/run/session.hpp"
#include "elastic/tree.hpp"
#include "train/device/cuda.hpp"

namespace ddprun::run {
namespace {

using console::human_count, console::several;

// `separator` and the keys of a table that the experiment uses and that are not the default:
// `; momentum = 0.9, nesterov = true`. "" for none.
std::string settings(const config::Loaded& loaded, const std::string& table, const std::string& separator) {
  static const std::set<std::string> shown_elsewhere{
      "data.name",          "data.root",    "data.batch_size", "data.batch_per",   "data.workers",   "data.prefetch",
      "data.pin_memory",    "data.options", "strategy.kind",   "strategy.devices", "optimizer.name", "optimizer.lr",
      "optimizer.scale_lr", "train.epochs", "train.steps",     "train.evaluate"};
  const auto defaults = config::key_values({});
  const std::vector<std::string> unused = config::unused_keys(loaded.experiment, loaded.sources);
  std::string text;
  for (const auto& [key, value] : config::key_values(loaded.experiment)) {
    if (!key.starts_with(table + ".") || value == defaults.at(key) || shown_elsewhere.contains(key) ||
        std::ranges::find(unused, key) != unused.end()) {
      continue;
    }
    text += (text.empty() ? separator : ", ") + key.substr(table.size() + 1) + " = " + value;
  }
  return text;
}

std::string data_of(const Assembly& assembly) {
  std::string text = assembly.experiment().data.name + ", " + several(assembly.train_samples(), "training sample");
  const auto validation = static_cast<int64_t>(assembly.split.validation.size());
  if (assembly.has_validation()) text += ", " + several(validation, "validation sample");
  if (assembly.has_test()) text += ", " + several(assembly.data.test->size(), "test sample");
  return text + settings(assembly.loaded, "data", "; ");
}

std::string strategy_of(const Assembly& assembly, int world) {
  const config::Experiment& experiment = assembly.experiment();
  std::string text = experiment.strategy.kind;
  if (assembly.comm) {
    text += std::string(" over ") + (world == 1 ? "single-process" : assembly.comm->table->name) + ", algorithm " +
            experiment.comm.algorithm;
  }
  return text + settings(assembly.loaded, "strategy", "; ");
}

std::string optimizer_of(const Assembly& assembly, int world) {
  const config::Experiment::Optimizer& optimizer = assembly.experiment().optimizer;
  const int factor = optimizer.scale_lr == "world" ? world : 1;
  std::ostringstream text;  // a number has at most six digits
  text << optimizer.name << ", lr = " << optimizer.lr * factor;
  if (factor > 1) text << " (" << optimizer.lr << " x " << factor << " ranks)";
  return text.str() + settings(assembly.loaded, "optimizer", ", ");
}

std::string world_of(const config::Experiment& experiment, int world) {
  if (!has_virtual_ranks(experiment)) return std::to_string(world);
  const int ranks = training_ranks(experiment, world);
  std::size_t sums = 1;  // that a rank sends in place of one
  for (int r = 0; r < world; ++r) sums = std::max(sums, elastic::nodes_of(elastic::share_of(r, world, ranks)).size());
  const double bytes = static_cast<double>(sums + 1) / 2;  // the reduce-scatter sends all sums, the allgather one
  return std::to_string(world) + ", " + several(ranks, "virtual rank") +
         (sums > 1 ? "; a rank sends up to " + exact_text(bytes) + " times the bytes of a ring" : "");
}

std::string batch_of(int64_t rank_batch, int world, int64_t devices) {
  const std::string all = std::to_string(rank_batch * world) + " in all, ";
  if (devices == 0) return all + std::to_string(rank_batch) + " per rank";
  return all + "at most " + std::to_string((rank_batch + devices - 1) / devices) + " per device";
}

std::string device_of(const Assembly& assembly, int world, int64_t devices, int64_t threads) {
  std::string text;
  if (!assembly.device().is_cpu()) {  // a GPU's work is not done by these threads
    for (const torch::Device device : assembly.devices) text += (text.empty() ? "" : ", ") + train::device_text(device);
    return world == 1 ? text : text + " of rank 0";
  }
  text = train::device_text(assembly.device()) + ", ";
  if (devices > 0) text += several(devices, "device") + " of ";
  text += several(threads, "thread") + (devices > 0 ? "" : " per rank");
  if (const char* policy = std::getenv("OMP_WAIT_POLICY")) text += std::string(", OMP_WAIT_POLICY=") + policy;
  return text;
}

std::string length_of(const config::Experiment::Train& train, int64_t steps_per_epoch) {
  if (train.steps) return several(*train.steps, "step") + ", an epoch has " + human_count(steps_per_epoch);
  return several(train.epochs.value_or(0), "epoch") + " of " + several(steps_per_epoch, "step");
}

}  // namespace

std::string banner(const Assembly& assembly, const train::DataLoader& loader, int world, int64_t threads,
                   const std::string& run_dir) {
  const config::Experiment& experiment = assembly.experiment();
  const int64_t devices = experiment.strategy.kind == "dp" ? experiment.strategy.devices : 0;
  int64_t parameters = 0;
  for (const auto& parameter : assembly.model->module().parameters()) parameters += parameter.numel();
  console::Table table({{"", console::Align::left}, {"", console::Align::left}});
  table.row({"experiment", experiment.experiment.name + ", seed " + std::to_string(experiment.experiment.seed)});
  table.row({"model", experiment.model.name + ", " + several(parameters, "parameter")});
  table.row({"data", data_of(assembly)});
  table.row({"strategy", strategy_of(assembly, world)});
  table.row({"optimizer", optimizer_of(assembly, training_ranks(experiment, world))});
  if (const std::string text = settings(assembly.loaded, "train", ""); !text.empty()) table.row({"training", text});
  const int ranks = training_ranks(experiment, world);
  table.row({"world size", world_of(experiment, world)});
  table.row({"batch", batch_of(loader.batch_size(), ranks, devices)});
  table.row({"device", device_of(assembly, world, devices, threads)});
  table.row({"length", length_of(experiment.train, loader.steps())});
  const std::string of_rank0 = world > 1 ? ", of rank 0" : "";
  table.row({"step lines", "means since the line before (in parentheses: since the start of the epoch)" + of_rank0});
  table.row({"run folder", run_dir});
  return table.text();
}

}  // namespace ddprun::run
