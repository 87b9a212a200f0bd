#include <algorithm>
#include <bit>

#include "cli/config/document.hpp"

namespace ddprun::config {
namespace {

class Check {
 public:
  Check(const Experiment& experiment, std::optional<int64_t> ranks, const Sources& sources, Errors& errors)
      : e_(experiment),
        ddp_(experiment.strategy.kind == "ddp"),
        ranks_(ranks.value_or(experiment.launch.nproc)),
        local_ranks_(ranks ? 0 : experiment.launch.nproc),
        sources_(sources),
        errors_(errors) {}

  void check_run() {
    constexpr std::size_t longest = 200;  // a file name has at most 255 bytes, and the time is appended
    const std::string& name = e_.experiment.name;
    const bool fits = !name.empty() && name.size() <= longest && name != "." && name != ".." &&
                      name.find('/') == std::string::npos && !has_control(name) && is_utf8(name);
    refuse(!fits, {"experiment.name"}, "names the run folder: give at most 200 bytes of UTF-8, without \"/\"");
    // An explicit "single" may be one variant of several; a forgotten strategy would train on one rank.
    const int64_t nproc = e_.launch.nproc;
    refuse(nproc > 1 && e_.strategy.kind == "single" && !sources_.given("strategy.kind"),
           {"launch.nproc", "strategy.kind"},
           "strategy.kind is not given, and its default \"single\" trains in one process; set strategy.kind = \"ddp\" "
           "for " +
               std::to_string(nproc) + " ranks");
  }

  void check_batches() {
    const std::string& sampler = e_.data.sampler;
    refuse(ddp_ && (sampler == "sequential" || sampler == "random"), {"data.sampler", "strategy.kind"},
           "ddp without a distributed sampler is refused; use \"auto\" or \"distributed\"");
    const bool shared = ddp_ && e_.data.batch_per == "global";
    const int64_t virtual_ranks = e_.strategy.virtual_ranks;
    const int64_t ranks = !shared             ? 1
                          : virtual_ranks > 0 ? virtual_ranks
                                              : std::max<int64_t>(1, ranks_);  // 0: checked later
    const int64_t rank_batch = e_.data.batch_size / ranks, below = rank_batch * ranks;
    refuse(below != e_.data.batch_size,
           {"data.batch_size", "data.batch_per", "launch.nproc", "strategy.kind", "strategy.virtual_ranks"},
           "is the batch of all ranks, and " + std::to_string(ranks) + (virtual_ranks > 0 ? " virtual" : "") +
               " ranks do not divide it; use " + (below > 0 ? std::to_string(below) + " or " : "") +
               std::to_string(below + ranks) + ", or data.batch_per = \"rank\"");
    refuse(e_.optimizer.name == "sgd" && e_.optimizer.nesterov && e_.optimizer.momentum == 0,
           {"optimizer.nesterov", "optimizer.momentum", "optimizer.name"},
           "needs momentum; give optimizer.momentum, such as 0.9, or nesterov = false");
    refuse(e_.train.epochs && e_.train.steps, {"train.steps", "train.epochs"},
           "train.epochs is given too; give one of the two");
    // Each micro-batch must have a sample of the rank's batch.
    refuse(e_.train.accumulate > std::max<int64_t>(1, rank_batch),
           {"train.accumulate", "data.batch_size", "data.batch_per", "launch.nproc", "strategy.kind"},
           "is more micro-batches than a rank has samples in a step, which is " + std::to_string(rank_batch) +
               "; use at most that, or a larger data.batch_size");
  }

  void check_schedule() {
    refuse(e_.train.schedule == "step" && e_.train.step_epochs == 0, {"train.schedule", "train.step_epochs"},
           "needs train.step_epochs, the epochs between two reductions of the learning rate");
    refuse(e_.train.schedule == "cosine" && e_.train.min_lr > e_.optimizer.lr,
           {"train.min_lr", "train.schedule", "optimizer.lr"}, "is above optimizer.lr, from which the rate falls");
    refuse(e_.train.deterministic && e_.train.cudnn_benchmark && e_.launch.device == "cuda",
           {"train.deterministic", "train.cudnn_benchmark", "launch.device"},
           "needs train.cudnn_benchmark = false, because a measurement may choose another kernel in each run");
    for (const auto& [key, metric] :
         {std::pair{"train.early_stop", e_.train.early_stop}, {"checkpoint.best", e_.checkpoint.best}}) {
      refuse(metric.starts_with("validation.") && e_.data.validation == 0, {key, "data.validation"},
             "needs data.validation, the part of the training set to evaluate on, such as 0.1");
      refuse(!metric.empty() && !metric.starts_with("train.") && !e_.train.evaluate, {key, "train.evaluate"},
             "needs train.evaluate = true; or use \"train.loss\"");
    }
  }

  void check_gpus() {
    const auto named = static_cast<int64_t>(e_.launch.devices.size());
    // 0: not known, or with nproc = "auto" as many as are named.
    const int64_t used = e_.strategy.kind == "dp" ? e_.strategy.devices : ddp_ ? local_ranks_ : 1;
    refuse(e_.launch.device == "cuda" && named > 0 && used > 0 && named != used,
           {"launch.devices", "launch.nproc", "strategy.devices", "strategy.kind"},
           "names " + std::to_string(named) + (named == 1 ? " GPU" : " GPUs") + ", and strategy \"" + e_.strategy.kind +
               "\" uses " + std::to_string(used) + " here; name one for each, or leave it out");
  }

  void check_virtual_ranks() {
    const std::string key = "strategy.virtual_ranks";
    const int64_t count = e_.strategy.virtual_ranks;
    if (count == 0 || !ddp_) return;
    refuse(!std::has_single_bit(static_cast<uint64_t>(count)), {key},
           "is not a power of two; use " + std::to_string(std::bit_ceil(static_cast<uint64_t>(count))));
    refuse(count < ranks_, {key, "launch.nproc", "strategy.kind"},
           "is less than the number of ranks, " + std::to_string(ranks_) + "; use at least as many, or fewer ranks");
    refuse(e_.data.balance_steps > 0, {key, "data.balance_steps"},
           "gives each virtual rank its own samples, and data.balance_steps moves samples; leave it out");
    refuse(e_.model.sync_batch_norm, {key, "model.sync_batch_norm"},
           "computes virtual ranks one after the other, and SyncBatchNorm needs all at once; leave out "
           "model.sync_batch_norm");
    refuse(e_.comm.stage_through_host && e_.launch.device == "cuda", {key, "comm.stage_through_host"},
           "sends the memory of GPUs directly; leave out comm.stage_through_host");
    for (const auto& [metric_key, metric] :
         {std::pair{"train.early_stop", e_.train.early_stop}, {"checkpoint.best", e_.checkpoint.best}}) {
      refuse(metric == "train.loss", {metric_key, key},
             "depends in its last digits on the number of ranks, so virtual ranks cannot decide by it; use "
             "\"validation.loss\" or \"test.loss\"");
    }
  }

  void check_sync_batch_norm() {
    const std::string key = "model.sync_batch_norm";
    if (!e_.model.sync_batch_norm || !ddp_) return;
    refuse(e_.data.last == "exact", {key, "data.last"},
           "needs samples on every rank in every step; use data.last = \"pad\" or \"drop\"");
    refuse(e_.data.balance_steps > 0, {key, "data.balance_steps"},
           "needs samples on every rank in every micro-batch; leave out data.balance_steps");
  }

  void check_fault() {
    const std::string& kind = e_.faults.kind;
    if (kind == "none") return;
    refuse(!ddp_ && (kind == "drop" || kind == "shape"), {"faults.kind", "strategy.kind"},
           "changes a collective, and only strategy \"ddp\" has collectives");
    const int64_t ranks = ddp_ ? ranks_ : 1;  // 0: not known
    refuse(ranks > 0 && e_.faults.rank >= ranks, {"faults.rank", "launch.nproc", "strategy.kind"},
           "the run has " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") + ", counted from 0");
  }

 private:
  // The error is reported at the first of the keys that it is about.
  void refuse(bool wrong, const std::vector<std::string>& about, const std::string& what) {
    const bool sound = std::ranges::all_of(about, [&](const std::string& key) { return errors_.sound(key); });
    if (wrong && sound) errors_.add_key(location_of(sources_, about.front()), about.front(), what);
  }

  const Experiment& e_;
  const bool ddp_;
  const int64_t ranks_;        // of all hosts; 0: not known
  const int64_t local_ranks_;  // of this host; 0: not known
  const Sources& sources_;
  Errors& errors_;
};

}  // namespace

void check_together(const Experiment& experiment, std::optional<int64_t> ranks, const Sources& sources,
                    Errors& errors) {
  Check check(experiment, ranks, sources, errors);
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
