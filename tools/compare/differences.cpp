#include "tools/compare/variant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>

#include "checkpoint/folder.hpp"
#include "cli/config/experiment.hpp"
#include "ddprun/error.hpp"
#include "record/run_dir.hpp"
#include "tools/lib/statistics.hpp"
#include "tools/report/runs.hpp"

namespace ddprun::compare {
namespace {

// Keys for how samples are loaded and divided among ranks, not for which samples. The global batch is compared instead.
const std::set<std::string> kLoading = {"data.workers",       "data.prefetch",   "data.pin_memory",
                                        "data.batch_weights", "data.batch_size", "data.batch_per"};

bool decides_the_work(const std::string& key) {
  if (key == "experiment.seed" || key == "train.epochs" || key == "train.steps") return true;
  return key.starts_with("data.") && !kLoading.contains(key);
}

// The value for each variant, and the names of the variants.
std::string line_of(const std::string& what, const std::vector<Variant>& variants,
                    const std::vector<std::string>& values) {
  std::string line = what + ":";
  for (std::size_t i = 0; i < variants.size(); ++i) {
    line += (i == 0 ? " " : ", ") + values[i] + " in " + variants[i].name;
  }
  return line;
}

std::map<std::string, std::vector<std::string>> differing_settings(const std::vector<Variant>& variants) {
  return report::differing_settings(
      tools::each(variants, [](const Variant& variant) { return variant.loaded.experiment; }));
}

// Keys that change no number, or that other causes stand for: workers, learning rate, BatchNorm.
const std::set<std::string> kLeftOut = {
    "launch.nproc",     "optimizer.lr",         "optimizer.scale_lr",         "strategy.kind",
    "strategy.devices", "strategy.main_device", "strategy.broadcast_buffers", "strategy.find_unused_parameters",
    "train.epochs",     "train.steps",          "train.early_stop",           "train.patience",
    "train.min_delta",  "train.check_gradients"};
const std::set<std::string> kKernels = {"launch.threads",        "launch.device",       "train.channels_last",
                                        "train.cudnn_benchmark", "train.deterministic", "train.cuda_graph",
                                        "train.accumulate"};
const std::set<std::string> kOrderOfSums = {"data.batch_weights", "data.balance_steps", "strategy.bucket_cap_mb",
                                            "strategy.first_bucket_cap_mb", "optimizer.fused"};

bool changes_numbers(const std::string& key) {
  if (key == "model.weights" || key == "checkpoint.resume" || key == "data.root") return true;
  return config::change_of(key) != config::Change::free && !kLeftOut.contains(key);
}

Cause cause_of(const std::string& key, const std::string& a, const std::string& b) {
  const bool is_kernel = kKernels.contains(key);
  const bool first = is_kernel || key == "experiment.seed" || key == "train.amp" || key == "checkpoint.resume" ||
                     key.starts_with("model.") || key.starts_with("data.");
  const bool rounds = is_kernel || kOrderOfSums.contains(key) || key.starts_with("comm.");
  return {fmt::format("{} ({} and {})", key, a, b), first, rounds};
}

double learning_rate_of(const config::Experiment& experiment) {
  const auto& optimizer = experiment.optimizer;
  return optimizer.scale_lr == "world" ? optimizer.lr * static_cast<double>(ranks_of(experiment)) : optimizer.lr;
}

std::string workers_text(const config::Experiment& experiment) {
  const int64_t workers = workers_of(experiment);
  if (workers == 1) return "one worker";
  return fmt::format("{} with {} {}", experiment.strategy.kind, workers,
                     experiment.strategy.kind == "dp" ? "devices" : "ranks");
}

// Over which samples BatchNorm computes its statistics.
std::string statistics_text(const config::Experiment& experiment) {
  const bool synchronized = experiment.strategy.kind == "ddp" && experiment.model.sync_batch_norm;
  const int64_t workers = synchronized ? 1 : workers_of(experiment);
  const int64_t samples = global_batch_of(experiment) / workers / experiment.train.accumulate;
  return fmt::format("{} samples", samples) + (workers == 1 ? "" : " for each of " + workers_text(experiment));
}

}  // namespace

std::vector<std::string> unfair_differences(const std::vector<Variant>& variants) {
  std::vector<std::string> lines;
  const auto batches =
      tools::each(variants, [](const Variant& one) { return std::to_string(global_batch_of(one.loaded.experiment)); });
  if (std::set<std::string>(batches.begin(), batches.end()).size() > 1) {
    lines.push_back(line_of("global batch", variants, batches));
  }
  for (const auto& [key, values] : differing_settings(variants)) {
    if (decides_the_work(key)) lines.push_back(line_of(key, variants, values));
  }
  return lines;
}

void require_fair(const std::vector<Variant>& variants) {
  const std::vector<std::string> differences = unfair_differences(variants);
  if (differences.empty()) return;
  std::string text = "compare: the variants do not do the same work; make it equal, or add --allow-different";
  for (const std::string& line : differences) text += "\n  " + line;
  throw Error(ExitCode::usage, text);
}

std::vector<std::string> keys_that_differ(const std::vector<Variant>& variants) {
  return tools::each(std::views::keys(differing_settings(variants)));
}

std::vector<Cause> causes_of(const config::Experiment& a, const config::Experiment& b, bool batch_norm) {
  std::vector<Cause> causes;
  const auto differs = [&](const char* format, const auto& x, const auto& y, bool at_once, bool rounds) {
    if (x != y) causes.push_back({fmt::format(fmt::runtime(format), x, y), at_once, rounds});
  };
  differs("global batch ({} and {})", global_batch_of(a), global_batch_of(b), true, false);
  if (batch_norm) differs("BatchNorm over {} and {}", statistics_text(a), statistics_text(b), true, false);
  differs("order of sums ({} and {})", workers_text(a), workers_text(b), true, true);
  differs("learning rate ({} and {})", learning_rate_of(a), learning_rate_of(b), false, false);
  for (const auto& [key, values] : report::differing_settings({a, b})) {
    if (changes_numbers(key)) causes.push_back(cause_of(key, values[0], values[1]));
  }
  return causes;
}

bool has_batch_norm(const std::string& run_dir) {
  const auto commits = checkpoint::list_commits(record::file_in(run_dir, "checkpoints"));
  if (commits.empty()) return false;
  const auto tensors = checkpoint::read_safetensors(commits.back().path).tensors;
  return std::ranges::any_of(tensors, [](const auto& tensor) { return tensor.name.ends_with("running_mean"); });
}

bool in_float32(const config::Experiment& a, const config::Experiment& b) {
  const auto is = [](const config::Experiment& one) {
    return one.train.amp == "off" && (one.strategy.kind != "ddp" || one.strategy.compression == "none");
  };
  return is(a) && is(b);
}

}  // namespace ddprun::compare
