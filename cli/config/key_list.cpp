// Every key of the config, in the order of docs/config.md, which says what each one means.
#include "cli/config/keys.hpp"

namespace ddprun::config {
namespace {

constexpr User kDdp = [](const Experiment& e) { return e.strategy.kind == "ddp"; };
constexpr User kDp = [](const Experiment& e) { return e.strategy.kind == "dp"; };
constexpr User kGpu = [](const Experiment& e) { return e.launch.device == "cuda"; };
constexpr User kSgd = [](const Experiment& e) { return e.optimizer.name == "sgd"; };
constexpr User kAdam = [](const Experiment& e) { return e.optimizer.name != "sgd"; };
constexpr User kShuffler = [](const Experiment& e) {
  return e.data.sampler == "auto" || e.data.sampler == "distributed";
};
constexpr User kCurriculum = [](const Experiment& e) { return e.data.sampler == "curriculum"; };
constexpr User kStepSchedule = [](const Experiment& e) { return e.train.schedule == "step"; };
constexpr User kCosineSchedule = [](const Experiment& e) { return e.train.schedule == "cosine"; };
constexpr User kEarlyStop = [](const Experiment& e) { return !e.train.early_stop.empty(); };
constexpr User kFaults = [](const Experiment& e) { return e.faults.kind != "none"; };

constexpr double max_seed = 4294967295.0;          // so that seed + epoch is in the range of every generator
constexpr double max_processes = 1024;             // on one host; more is probably a typing error
constexpr double max_bucket_cap_mb = 64 * 1024.0;  // MiB

// What can choose the best epoch.
const std::vector<std::string> metrics = {"",          "validation.loss", "validation.accuracy",
                                          "test.loss", "test.accuracy",   "train.loss"};

// A key with its member, from one spelling, so that they always agree.
#define DDPRUN_KEY(key, ...)                                                            \
  Key {                                                                                 \
    .path = #key, .member = [](Experiment& e) -> Member { return &e.key; }, __VA_ARGS__ \
  }

}  // namespace

const std::vector<Key>& keys() {
  static const std::vector<Key> all = {
      DDPRUN_KEY(schema_version, .range = {1, 1}),

      DDPRUN_KEY(experiment.name, .computed_default = true),
      DDPRUN_KEY(experiment.seed, .range = {0, max_seed}),
      DDPRUN_KEY(experiment.output, .nonempty = true, .per_host = true),

      DDPRUN_KEY(launch.nproc, .user = kDdp, .range = {1, max_processes}, .count_word = "auto", .per_host = true),
      DDPRUN_KEY(launch.threads, .range = {0, 1024}, .per_host = true),
      DDPRUN_KEY(launch.device, .words = {"cpu", "cuda"}),
      DDPRUN_KEY(launch.devices, .user = kGpu, .range = {0, max_processes - 1}, .per_host = true,
                 .computed_default = true),
      DDPRUN_KEY(launch.timeout, .form = Form::duration, .range = kDurations),
      DDPRUN_KEY(launch.grace, .user = kDdp, .form = Form::duration, .range = kDurations, .per_host = true),
      DDPRUN_KEY(launch.max_restarts, .user = kDdp, .range = {0, 1000000}),
      DDPRUN_KEY(launch.insecure, .user = kDdp),
      DDPRUN_KEY(launch.log_dir, .per_host = true, .computed_default = true),

      DDPRUN_KEY(comm.backend, .user = kDdp, .nonempty = true),
      DDPRUN_KEY(comm.algorithm, .user = kDdp, .nonempty = true),
      DDPRUN_KEY(comm.timeout, .user = kDdp, .form = Form::duration, .range = kDurations),
      DDPRUN_KEY(comm.check, .user = kDdp, .words = {"fingerprint", "off"}),
      DDPRUN_KEY(comm.stage_through_host, .user = kDdp),
      DDPRUN_KEY(comm.options, .user = kDdp, .per_host_options = {"interface", "devices", "ib_hca", "debug_file"}),

      DDPRUN_KEY(strategy.kind, .words = {"single", "dp", "ddp"}),
      DDPRUN_KEY(strategy.devices, .user = kDp, .range = {1, max_processes}),
      DDPRUN_KEY(strategy.bucket_cap_mb, .user = kDdp,
                 .range = {.low = 0, .high = max_bucket_cap_mb, .low_open = true}),
      DDPRUN_KEY(strategy.find_unused_parameters, .user = kDdp),
      DDPRUN_KEY(strategy.broadcast_buffers, .user = kDdp),
      DDPRUN_KEY(strategy.compression, .user = kDdp, .words = {"none", "fp16", "bf16", "powersgd"}),
      DDPRUN_KEY(strategy.powersgd_rank, .user = kDdp, .range = {.low = 1}),
      DDPRUN_KEY(strategy.powersgd_start, .user = kDdp, .range = {.low = 2}),
      DDPRUN_KEY(strategy.zero, .user = kDdp, .range = {0, 1}),
      DDPRUN_KEY(strategy.hash_every, .user = kDdp, .range = {.low = 0}),

      DDPRUN_KEY(model.name, .nonempty = true, .example = "name = \"simplenet\""),
      DDPRUN_KEY(model.weights, .computed_default = true),
      DDPRUN_KEY(model.sync_batch_norm, .user = kDdp),
      DDPRUN_KEY(model.options),

      DDPRUN_KEY(data.name, .nonempty = true, .example = "name = \"mnist\""),
      DDPRUN_KEY(data.root, .per_host = true, .computed_default = true),
      DDPRUN_KEY(data.batch_size, .range = {1, 1 << 24}),
      DDPRUN_KEY(data.batch_per, .words = {"global", "rank"}),
      DDPRUN_KEY(data.shuffle, .user = kShuffler),
      DDPRUN_KEY(data.workers, .range = {0, 256}, .count_word = "auto"),
      DDPRUN_KEY(data.prefetch, .range = {1, 1024}),
      DDPRUN_KEY(data.pin_memory, .user = kGpu),
      DDPRUN_KEY(data.last, .words = {"pad", "drop", "exact"}),
      DDPRUN_KEY(data.sampler, .words = {"auto", "sequential", "random", "distributed", "curriculum"}),
      DDPRUN_KEY(data.difficulty, .user = kCurriculum, .nonempty = true),
      DDPRUN_KEY(data.curriculum_start, .user = kCurriculum, .range = {.low = 0, .high = 1, .low_open = true}),
      DDPRUN_KEY(data.curriculum_epochs, .user = kCurriculum, .range = {.low = 1}),
      DDPRUN_KEY(data.batch_weights, .user = kDdp, .range = {1, 65536}, .computed_default = true),
      DDPRUN_KEY(data.balance_steps, .user = kDdp, .range = {.low = 0}),
      DDPRUN_KEY(data.standardize),
      DDPRUN_KEY(data.validation, .form = Form::part, .range = {0, 1LL << 40}),
      DDPRUN_KEY(data.options),

      DDPRUN_KEY(optimizer.name, .words = {"sgd", "adam", "adamw"}),
      DDPRUN_KEY(optimizer.lr, .range = {.low = 0}),
      DDPRUN_KEY(optimizer.scale_lr, .words = {"none", "world"}),
      DDPRUN_KEY(optimizer.momentum, .user = kSgd, .range = {.low = 0, .high = 1, .high_open = true}),
      DDPRUN_KEY(optimizer.nesterov, .user = kSgd),
      DDPRUN_KEY(optimizer.weight_decay, .range = {.low = 0}),
      DDPRUN_KEY(optimizer.betas, .user = kAdam, .range = {.low = 0, .high = 1, .high_open = true}),
      DDPRUN_KEY(optimizer.eps, .user = kAdam, .range = {.low = 0}),
      DDPRUN_KEY(optimizer.fused),

      DDPRUN_KEY(train.epochs, .range = {.low = 1}, .computed_default = true),
      DDPRUN_KEY(train.steps, .range = {.low = 1}, .computed_default = true),
      DDPRUN_KEY(train.evaluate),
      DDPRUN_KEY(train.amp, .words = {"off", "bf16", "fp16"}),
      DDPRUN_KEY(train.channels_last),
      DDPRUN_KEY(train.cudnn_benchmark, .user = kGpu),
      DDPRUN_KEY(train.deterministic),
      DDPRUN_KEY(train.cuda_graph, .user = kGpu),
      DDPRUN_KEY(train.accumulate, .range = {.low = 1}),
      DDPRUN_KEY(train.clip_norm, .range = {.low = 0}),
      DDPRUN_KEY(train.check_gradients, .words = {"auto", "stop", "skip", "off"}),
      DDPRUN_KEY(train.schedule, .words = {"none", "step", "cosine"}),
      DDPRUN_KEY(train.warmup, .range = {.low = 0}),
      DDPRUN_KEY(train.step_epochs, .user = kStepSchedule, .range = {.low = 0}, .computed_default = true),
      DDPRUN_KEY(train.step_factor, .user = kStepSchedule, .range = {.low = 0, .high = 1, .low_open = true}),
      DDPRUN_KEY(train.min_lr, .user = kCosineSchedule, .range = {.low = 0}),
      DDPRUN_KEY(train.early_stop, .words = metrics),
      DDPRUN_KEY(train.patience, .user = kEarlyStop, .range = {.low = 1}),
      DDPRUN_KEY(train.min_delta, .user = kEarlyStop, .range = {.low = 0}),

      DDPRUN_KEY(checkpoint.every_epochs, .range = {.low = 0}),
      DDPRUN_KEY(checkpoint.every_steps, .range = {.low = 0}),
      DDPRUN_KEY(checkpoint.every_time, .form = Form::duration, .range = {0, 24 * 60 * 60}),
      DDPRUN_KEY(checkpoint.keep, .range = {.low = 1}, .count_word = "all"),
      DDPRUN_KEY(checkpoint.on_error, .words = {"stop", "warn"}),
      DDPRUN_KEY(checkpoint.best, .words = metrics),
      DDPRUN_KEY(checkpoint.resume, .per_host = true),

      DDPRUN_KEY(log.every, .range = {.low = 1}),
      DDPRUN_KEY(log.level, .words = {"debug", "info", "warning", "error"}),
      DDPRUN_KEY(log.tensorboard),
      DDPRUN_KEY(log.trace_steps, .range = {.low = 1}),
      DDPRUN_KEY(log.parity_steps, .range = {.low = 0}),

      DDPRUN_KEY(faults.kind, .words = {"none", "kill", "stop", "spin", "throw", "slow", "nan_gradient", "drop",
                                        "shape", "dtype", "op", "order"}),
      DDPRUN_KEY(faults.rank, .user = kFaults, .range = {.low = 0}),
      DDPRUN_KEY(faults.step, .user = kFaults, .range = {.low = 1}),
      DDPRUN_KEY(faults.seconds, .user = kFaults, .range = {.low = 0, .high = 24 * 60 * 60, .low_open = true}),
  };
  return all;
}

}  // namespace ddprun::config
