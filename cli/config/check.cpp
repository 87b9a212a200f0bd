#include <algorithm>
#include <bit>

#include "cli/config/document.hpp"

namespace ddprun::config {
namespace {

struct Check {
  const Experiment& e;
  const Sources& sources;
  Errors& errors;
  const int64_t all_ranks;    // of all hosts; 0: not known
  const int64_t local_ranks;  // of this host; 0: not known
  const bool ddp = e.strategy.kind == "ddp";

  void check_run() {
    constexpr std::size_t longest = 200;  // a file name has at most 255 bytes, and the time is appended
    const std::string& name = e.experiment.name;
    const bool fits = !name.empty() && name.size() <= longest && name != "." && name != ".." &&
                      name.find('/') == std::string::npos && !has_control(name) && is_utf8(name);
    refuse(!fits, {"experiment.name"}, "names the run folder: give at most 200 bytes of UTF-8, without \"/\"");
    // An explicit "single" may be one variant of several; a forgotten strategy would train on one rank.
    const int64_t nproc = e.launch.nproc;
    refuse(nproc > 1 && e.strategy.kind == "single" && !sources.given("strategy.kind"),
           {"launch.nproc", "strategy.kind"},
           "strategy.kind is not given, and its default \"single\" trains in one process; set strategy.kind = \"ddp\" "
           "for " +
               std::to_string(nproc) + " ranks");
  }

  void check_batches() {
    const std::string& sampler = e.data.sampler;
    refuse(ddp && (sampler == "sequential" || sampler == "random"), {"data.sampler", "strategy.kind"},
           "ddp without a distributed sampler is refused; use \"auto\" or \"distributed\"");
    const bool shared = ddp && e.data.batch_per == "global";
    const int64_t virtual_ranks = e.strategy.virtual_ranks;
    const int64_t ranks = !shared             ? 1
                          : virtual_ranks > 0 ? virtual_ranks
                                              : std::max<int64_t>(1, all_ranks);  // 0: checked later
    const int64_t rank_batch = e.data.batch_size / ranks, below = rank_batch * ranks;
    refuse(below != e.data.batch_size,
           {"data.batch_size", "data.batch_per", "launch.nproc", "strategy.kind", "strategy.virtual_ranks"},
           "is the batch of all ranks, and " + std::to_string(ranks) + (virtual_ranks > 0 ? " virtual" : "") +
               " ranks do not divide it; use " + (below > 0 ? std::to_string(below) + " or " : "") +
               std::to_string(below + ranks) + ", or data.batch_per = \"rank\"");
    refuse(e.optimizer.name == "sgd" && e.optimizer.nesterov && e.optimizer.momentum == 0,
           {"optimizer.nesterov", "optimizer.momentum", "optimizer.name"},
           "needs momentum; give optimizer.momentum, such as 0.9, or nesterov = false");
    refuse(e.train.epochs && e.train.steps, {"train.steps", "train.epochs"},
           "train.epochs is given too; give one of the two");
    // Each micro-batch must have a sample of the rank's batch.
    refuse(e.train.accumulate > std::max<int64_t>(1, rank_batch),
           {"train.accumulate", "data.batch_size", "data.batch_per", "launch.nproc", "strategy.kind"},
           "is more micro-batches than a rank has samples in a step, which is " + std::to_string(rank_batch) +
               "; use at most that, or a larger data.batch_size");
  }

  void check_schedule() {
    refuse(e.train.schedule == "step" && e.train.step_epochs == 0, {"train.schedule", "train.step_epochs"},
           "needs train.step_epochs, the epochs between two reductions of the learning rate");
    refuse(e.train.schedule == "cosine" && e.train.min_lr > e.optimizer.lr,
           {"train.min_lr", "train.schedule", "optimizer.lr"}, "is above optimizer.lr, from which the rate falls");
    refuse(e.train.deterministic && e.train.cudnn_benchmark && e.launch.device == "cuda",
           {"train.deterministic", "train.cudnn_benchmark", "launch.device"},
           "needs train.cudnn_benchmark = false, because a measurement may choose another kernel in each run");
    for (const auto& [key, metric] :
         {std::pair{"train.early_stop", e.train.early_stop}, {"checkpoint.best", e.checkpoint.best}}) {
      refuse(metric.starts_with("validation.") && e.data.validation == 0, {key, "data.validation"},
             "needs data.validation, the part of the training set to evaluate on, such as 0.1");
      refuse(!metric.empty() && !metric.starts_with("train.") && !e.train.evaluate, {key, "train.evaluate"},
             "needs train.evaluate = true; or use \"train.loss\"");
      refuse(ddp && e.strategy.virtual_ranks > 0 && metric == "train.loss", {key, "strategy.virtual_ranks"},
             "depends in its last digits on the number of ranks, so virtual ranks cannot decide by it; use "
             "\"validation.loss\" or \"test.loss\"");
    }
  }

  void check_gpus() {
    const auto named = static_cast<int64_t>(e.launch.devices.size());
    // 0: not known, or with nproc = "auto" as many as are named.
    const int64_t used = e.strategy.kind == "dp" ? e.strategy.devices : ddp ? local_ranks : 1;
    refuse(e.launch.device == "cuda" && named > 0 && used > 0 && named != used,
           {"launch.devices", "launch.nproc", "strategy.devices", "strategy.kind"},
           "names " + std::to_string(named) + (named == 1 ? " GPU" : " GPUs") + ", and strategy \"" + e.strategy.kind +
               "\" uses " + std::to_string(used) + " here; name one for each, or leave it out");
  }

  void check_virtual_ranks() {
    const std::string key = "strategy.virtual_ranks";
    const int64_t count = e.strategy.virtual_ranks;
    if (count == 0 || !ddp) return;
    refuse(!std::has_single_bit(static_cast<uint64_t>(count)), {key},
           "is not a power of two; use " + std::to_string(std::bit_ceil(static_cast<uint64_t>(count))));
    refuse(count < all_ranks, {key, "launch.nproc", "strategy.kind"},
           "is less than the number of ranks, " + std::to_string(all_ranks) + "; use at least as many, or fewer ranks");
    refuse(e.data.balance_steps > 0, {key, "data.balance_steps"},
           "gives each virtual rank its own samples, and data.balance_steps moves samples; leave it out");
    refuse(e.model.sync_batch_norm && e.launch.device == "cuda", {key, "model.sync_batch_norm"},
           "is possible with SyncBatchNorm on CPUs only; leave out model.sync_batch_norm");
    refuse(e.comm.stage_through_host && e.launch.device == "cuda", {key, "comm.stage_through_host"},
           "sends the memory of GPUs directly; leave out comm.stage_through_host");
  }

  void check_sync_batch_norm() {
    const std::string key = "model.sync_batch_norm";
    if (!e.model.sync_batch_norm || !ddp) return;
    refuse(e.data.last == "exact", {key, "data.last"},
           "needs samples on every rank in every step; use data.last = \"pad\" or \"drop\"");
    refuse(e.data.balance_steps > 0, {key, "data.balance_steps"},
           "needs samples on every rank in every micro-batch; leave out data.balance_steps");
  }

  void check_fault() {
    const std::string& kind = e.faults.kind;
    if (kind == "none") return;
    refuse(!ddp && (kind == "drop" || kind == "shape"), {"faults.kind", "strategy.kind"},
           "changes a collective, and only strategy \"ddp\" has collectives");
    const int64_t ranks = ddp ? all_ranks : 1;  // 0: not known
    refuse(ranks > 0 && e.faults.rank >= ranks, {"faults.rank", "launch.nproc", "strategy.kind"},
           "the run has " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") + ", counted from 0");
  }

  // The error is reported at the first of the keys that it is about.
  void refuse(bool wrong, const std::vector<std::string>& about, const std::string& what) {
    const bool sound = std::ranges::all_of(about, [&](const std::string& key) { return errors.sound(key); });
    if (wrong && sound) errors.add_key(location_of(sources, about.front()), about.front(), what);
  }
};

}  // namespace

void check_together(const Experiment& experiment, std::optional<int64_t> ranks, const Sources& sources,
                    Errors& errors) {
  const int64_t nproc = experiment.launch.nproc;
  Check check{experiment, sources, errors, ranks.value_or(nproc), ranks ? 0 : nproc};
  check.check_run();
  check.check_batches();
  check.check_schedule();
  check.check_gpus();
  check.check_virtual_ranks();
  check.check_sync_batch_norm();
  check.check_fault();
}

void check_ranks(const Loaded& loaded, int64_t ranks) {
  Errors errors;
  check_together(loaded.experiment, ranks, loaded.sources, errors);
  errors.raise();
}

}  // namespace ddprun::config
