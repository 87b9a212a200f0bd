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
constexpr User kStepSchedule = [](const Experiment& e) { return e.train.schedule == "step"; };
constexpr User kCosineSchedule = [](const Experiment& e) { return e.train.schedule == "cosine"; };
constexpr User kEarlyStop = [](const Experiment& e) { return !e.train.early_stop.empty(); };
constexpr User kFaults = [](const Experiment& e) { return e.faults.kind != "none"; };

// What a key accepts. docs/config.md and Experiment have its meaning and its default.
constexpr ddprun_option_spec kTextOrEmpty = text_option(nullptr, nullptr, nullptr);
constexpr ddprun_option_spec kText = name_option(nullptr, nullptr, nullptr);
constexpr ddprun_option_spec kFlag = flag_option(nullptr, nullptr, nullptr);
constexpr ddprun_option_spec kOptions{};
constexpr ddprun_option_spec choice(const char* words) {
  return choice_option(nullptr, nullptr, words, nullptr);
}
constexpr ddprun_option_spec integer(const char* least, const char* most = nullptr) {
  return integer_option(nullptr, nullptr, least, most, nullptr);
}
constexpr ddprun_option_spec number(const char* least, const char* most = nullptr) {
  return real_option(nullptr, nullptr, least, most, nullptr);
}
constexpr ddprun_option_spec duration(const char* least) {
  return duration_option(nullptr, nullptr, least, "24h", nullptr);
}

constexpr const char* max_seed = "4294967295";  // so that seed + epoch is in the range of every generator
constexpr const char* max_processes = "1024";   // on one host; more is probably a typing error

// What a resumed run may do with a key that decides its results.
constexpr Change kReported = Change::reported, kRefused = Change::refused;

// What can choose the best epoch.
constexpr const char* metrics = "|validation.loss|validation.accuracy|test.loss|test.accuracy|train.loss";

// A key with its member, from one spelling, so that they always agree.
#define DDPRUN_KEY(key, accepted, ...)                                                                     \
  Key {                                                                                                    \
    .path = #key, .member = [](Experiment& e) -> Member { return &e.key; }, .value = accepted, __VA_ARGS__ \
  }

}  // namespace

const std::vector<Key>& keys() {
  static const std::vector<Key> all = {
      DDPRUN_KEY(experiment.name, kTextOrEmpty, .computed_default = true),
      DDPRUN_KEY(experiment.seed, integer("0", max_seed), .change = kRefused),
      DDPRUN_KEY(experiment.output, kText, .per_host = true),

      DDPRUN_KEY(launch.nproc, or_word(integer("1", max_processes), "auto"), .user = kDdp, .per_host = true),
      DDPRUN_KEY(launch.threads, integer("0", "1024"), .per_host = true, .change = kReported),
      DDPRUN_KEY(launch.device, choice("cpu|cuda"), .change = kReported),
      DDPRUN_KEY(launch.devices, list_of(integer("0", "1023")), .user = kGpu, .per_host = true,
                 .computed_default = true),
      DDPRUN_KEY(launch.timeout, duration("1ms")),
      DDPRUN_KEY(launch.grace, duration("1ms"), .user = kDdp, .per_host = true),
      DDPRUN_KEY(launch.max_restarts, integer("0", "1000000"), .user = kDdp),
      DDPRUN_KEY(launch.insecure, kFlag, .user = kDdp),
      DDPRUN_KEY(launch.log_dir, kTextOrEmpty, .per_host = true, .computed_default = true),

      DDPRUN_KEY(comm.backend, kText, .user = kDdp, .change = kReported),
      DDPRUN_KEY(comm.algorithm, kText, .user = kDdp, .change = kReported),
      DDPRUN_KEY(comm.timeout, duration("1ms"), .user = kDdp),
      DDPRUN_KEY(comm.check, choice("fingerprint|off"), .user = kDdp),
      DDPRUN_KEY(comm.stage_through_host, kFlag, .user = kDdp, .change = kReported),
      DDPRUN_KEY(comm.options, kOptions, .user = kDdp,
                 .per_host_options = {"interface", "devices", "ib_hca", "debug_file"}, .change = kReported),

      DDPRUN_KEY(strategy.kind, choice("single|dp|ddp"), .change = kReported),
      DDPRUN_KEY(strategy.devices, integer("1", max_processes), .user = kDp, .change = kReported),
      DDPRUN_KEY(strategy.virtual_ranks, integer("0", "1024"), .user = kDdp, .change = kReported),
      DDPRUN_KEY(strategy.bucket_cap_mb, above_least(number("0", "65536")), .user = kDdp, .change = kReported),
      DDPRUN_KEY(strategy.find_unused_parameters, kFlag, .user = kDdp, .change = kReported),
      DDPRUN_KEY(strategy.broadcast_buffers, kFlag, .user = kDdp, .change = kReported),
      DDPRUN_KEY(strategy.compression, choice("none|fp16|bf16"), .user = kDdp, .change = kReported),
      DDPRUN_KEY(strategy.zero, integer("0", "1"), .user = kDdp),
      DDPRUN_KEY(strategy.hash_every, integer("0"), .user = kDdp),

      DDPRUN_KEY(model.name, kText, .example = "name = \"simplenet\"", .change = kRefused),
      DDPRUN_KEY(model.weights, kTextOrEmpty, .computed_default = true),
      DDPRUN_KEY(model.sync_batch_norm, kFlag, .user = kDdp, .change = kRefused),
      DDPRUN_KEY(model.options, kOptions, .change = kRefused),

      DDPRUN_KEY(data.name, kText, .example = "name = \"mnist\"", .change = kRefused),
      DDPRUN_KEY(data.root, kTextOrEmpty, .per_host = true, .computed_default = true),
      DDPRUN_KEY(data.batch_size, integer("1", "16777216")),
      DDPRUN_KEY(data.batch_per, choice("global|rank")),
      DDPRUN_KEY(data.shuffle, kFlag, .user = kShuffler, .change = kRefused),
      DDPRUN_KEY(data.workers, or_word(integer("0", "256"), "auto")),
      DDPRUN_KEY(data.prefetch, integer("1", "1024")),
      DDPRUN_KEY(data.pin_memory, kFlag, .user = kGpu),
      DDPRUN_KEY(data.last, choice("pad|drop|exact"), .change = kRefused),
      DDPRUN_KEY(data.sampler, choice("auto|sequential|random|distributed"), .change = kRefused),
      DDPRUN_KEY(data.balance_steps, integer("0"), .user = kDdp, .change = kReported),
      DDPRUN_KEY(data.standardize, kFlag, .change = kRefused),
      DDPRUN_KEY(data.validation, part_option(nullptr, nullptr, "0", "1099511627776", nullptr), .change = kRefused),
      DDPRUN_KEY(data.options, kOptions, .change = kRefused),

      DDPRUN_KEY(optimizer.name, choice("sgd|adam|adamw"), .change = kRefused),
      DDPRUN_KEY(optimizer.lr, number("0"), .change = kReported),
      DDPRUN_KEY(optimizer.scale_lr, choice("none|world"), .change = kReported),
      DDPRUN_KEY(optimizer.momentum, below_most(number("0", "1")), .user = kSgd, .change = kReported),
      DDPRUN_KEY(optimizer.nesterov, kFlag, .user = kSgd, .change = kReported),
      DDPRUN_KEY(optimizer.weight_decay, number("0"), .change = kReported),
      DDPRUN_KEY(optimizer.betas, list_of(below_most(number("0", "1")), 2), .user = kAdam, .change = kReported),
      DDPRUN_KEY(optimizer.eps, number("0"), .user = kAdam, .change = kReported),

      DDPRUN_KEY(train.epochs, integer("1"), .computed_default = true, .change = kReported),
      DDPRUN_KEY(train.steps, integer("1"), .computed_default = true, .change = kReported),
      DDPRUN_KEY(train.evaluate, kFlag),
      DDPRUN_KEY(train.amp, choice("off|bf16|fp16"), .change = kReported),
      DDPRUN_KEY(train.channels_last, kFlag, .change = kReported),
      DDPRUN_KEY(train.cudnn_benchmark, kFlag, .user = kGpu, .change = kReported),
      DDPRUN_KEY(train.deterministic, kFlag, .change = kReported),
      DDPRUN_KEY(train.accumulate, integer("1"), .change = kReported),
      DDPRUN_KEY(train.clip_norm, number("0"), .change = kReported),
      DDPRUN_KEY(train.check_gradients, choice("auto|stop|skip|off"), .change = kReported),
      DDPRUN_KEY(train.schedule, choice("none|step|cosine"), .change = kReported),
      DDPRUN_KEY(train.warmup, integer("0"), .change = kReported),
      DDPRUN_KEY(train.step_epochs, integer("0"), .user = kStepSchedule, .computed_default = true, .change = kReported),
      DDPRUN_KEY(train.step_factor, above_least(number("0", "1")), .user = kStepSchedule, .change = kReported),
      DDPRUN_KEY(train.min_lr, number("0"), .user = kCosineSchedule, .change = kReported),
      DDPRUN_KEY(train.early_stop, choice(metrics), .change = kReported),
      DDPRUN_KEY(train.patience, integer("1"), .user = kEarlyStop, .change = kReported),
      DDPRUN_KEY(train.min_delta, number("0"), .user = kEarlyStop, .change = kReported),

      DDPRUN_KEY(checkpoint.every_epochs, integer("0")),
      DDPRUN_KEY(checkpoint.every_steps, integer("0")),
      DDPRUN_KEY(checkpoint.every_time, duration("0s")),
      DDPRUN_KEY(checkpoint.keep, or_word(integer("1"), "all")),
      DDPRUN_KEY(checkpoint.on_error, choice("stop|warn")),
      DDPRUN_KEY(checkpoint.best, choice(metrics)),
      DDPRUN_KEY(checkpoint.resume, kTextOrEmpty, .per_host = true),

      DDPRUN_KEY(log.every, integer("1")),
      DDPRUN_KEY(log.tensorboard, kFlag),
      DDPRUN_KEY(log.trace_steps, list_of(integer("1"))),
      DDPRUN_KEY(log.parity_steps, integer("0")),

      DDPRUN_KEY(faults.kind, choice("none|kill|stop|spin|throw|slow|nan_gradient|drop|shape|dtype|op|order")),
      DDPRUN_KEY(faults.rank, integer("0"), .user = kFaults),
      DDPRUN_KEY(faults.step, integer("1"), .user = kFaults),
      DDPRUN_KEY(faults.seconds, above_least(number("0", "86400")), .user = kFaults),
  };
  return all;
}

}  // namespace ddprun::config
