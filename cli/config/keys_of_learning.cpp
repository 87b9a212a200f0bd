// The keys of model, data and training.
#include "cli/config/keys.hpp"

namespace ddprun::config {
namespace {

constexpr User kSgd{"Used by sgd.", [](const Experiment& e) { return e.optimizer.name == "sgd"; }};
constexpr User kAdam{"Used by adam and adamw.", [](const Experiment& e) { return e.optimizer.name != "sgd"; }};
constexpr User kShuffler{"Used by the samplers auto and distributed.", [](const Experiment& e) {
                           return e.data.sampler == "auto" || e.data.sampler == "distributed";
                         }};
constexpr User kCurriculum{"Used by the sampler curriculum.",
                           [](const Experiment& e) { return e.data.sampler == "curriculum"; }};
constexpr User kStepSchedule{"Used by the schedule step.",
                             [](const Experiment& e) { return e.train.schedule == "step"; }};
constexpr User kCosineSchedule{"Used by the schedule cosine.",
                               [](const Experiment& e) { return e.train.schedule == "cosine"; }};
constexpr User kEarlyStop{"Used by early_stop.", [](const Experiment& e) { return !e.train.early_stop.empty(); }};
constexpr User kFaults{"Used if kind is not \"none\".", [](const Experiment& e) { return e.faults.kind != "none"; }};

// What can choose the best epoch.
const std::vector<std::string> metrics = {"",          "validation.loss", "validation.accuracy",
                                          "test.loss", "test.accuracy",   "train.loss"};

}  // namespace

std::vector<Key> describe_learning() {
  return {
      DDPRUN_KEY(model.name, .nonempty = true, .example = "name = \"simplenet\"",
                 .meaning = "The model plugin: `\"linear\"`, `\"simplenet\"`, `\"resnet18\"`, or your own, by name "
                            "(`\"simplenet\"` finds libddprun_model_simplenet.so) or path."),
      DDPRUN_KEY(model.weights, .default_note = "random, from experiment.seed",
                 .meaning = "A safetensors file with the initial weights, such as a checkpoint. It must hold each "
                            "parameter and buffer of the model under its PyTorch name, with its shape and dtype, and "
                            "nothing else. A relative path in a file is relative to the file's folder."),
      DDPRUN_KEY(model.sync_batch_norm, .user = &kDdp,
                 .meaning = "true: each BatchNorm of the model computes its statistics over the batches of all ranks, "
                            "as PyTorch's SyncBatchNorm. Each one costs a collective in forward and one in backward. "
                            "Every rank must have samples in every step."),
      DDPRUN_KEY(model.options,
                 .meaning = "Options of the model, passed on unchanged. simplenet: `hidden = 256`. resnet18: `stem = "
                            "\"imagenet\"` (7x7 with stride 2, then pooling) or `\"small\"` (3x3, for images such as "
                            "32x32); `memory_format = \"contiguous\"` or `\"channels_last\"`. linear has no options."),

      DDPRUN_KEY(data.name, .nonempty = true, .example = "name = \"mnist\"",
                 .meaning = "The data set: a built-in one such as `\"mnist\"` (`ddprun plugins` lists them), or a "
                            "plugin, by name (`\"image-folder\"` finds libddprun_dataset_image-folder.so) or path."),
      DDPRUN_KEY(
          data.root, .per_host = true, .default_note = "the data set's default folder",
          .meaning =
              "The folder with the data set's files. A relative path in a file is relative to the file's folder; one "
              "that `--set` gives, to the current folder. The default folder is in the current folder."),
      DDPRUN_KEY(data.batch_size, .range = {1, 1 << 24},
                 .meaning = "Samples per batch: of all ranks together, or of each rank (see batch_per)."),
      DDPRUN_KEY(data.batch_per, .words = {"global", "rank"},
                 .meaning = "What batch_size counts. `\"global\"`: the batch of all ranks together; it must be a "
                            "multiple of the number of ranks. `\"rank\"`: the batch of each rank."),
      DDPRUN_KEY(data.shuffle, .user = &kShuffler, .meaning = "Shuffles the training samples anew in each epoch."),
      DDPRUN_KEY(data.workers, .range = {0, 256}, .count_word = "auto",
                 .meaning = "Threads per rank that prepare batches in advance. 0: no threads; each batch is prepared "
                            "when it is needed. `\"auto\"`: one per core that the rank may use, at most 8."),
      DDPRUN_KEY(data.prefetch, .range = {1, 1024}, .meaning = "Batches that each worker prepares in advance."),
      DDPRUN_KEY(data.pin_memory, .user = &kGpu,
                 .meaning = "true: batches are in page-locked memory, so they are copied to the GPU while it computes. "
                            "false: they are in pageable memory; use it if the system limits page-locked memory."),
      DDPRUN_KEY(data.last, .words = {"pad", "drop", "exact"},
                 .meaning = "What to do if the data set cannot be divided equally among the ranks. `\"pad\"`: repeat "
                            "samples, as PyTorch does. `\"drop\"`: leave out the rest, and also a last batch that is "
                            "not full, as `drop_last` of PyTorch's sampler and DataLoader. `\"exact\"`: use each "
                            "sample once, and weight gradients by the sample counts of the ranks."),
      DDPRUN_KEY(data.sampler, .words = {"auto", "sequential", "random", "distributed", "curriculum"},
                 .meaning = "The sampler. `\"auto\"`: distributed with ddp; otherwise random or sequential, depending "
                            "on shuffle. `\"curriculum\"`: distributed, easiest samples first. With ddp, only a "
                            "sampler that divides the data set among the ranks is allowed."),
      DDPRUN_KEY(
          data.difficulty, .user = &kCurriculum, .nonempty = true,
          .meaning =
              "The difficulty of samples. `\"magnitude\"`: the mean absolute value of a sample's input. Otherwise a "
              "text file with one number per line, one line per training sample; a higher number is more difficult."),
      DDPRUN_KEY(data.curriculum_start, .user = &kCurriculum, .range = {.low = 0, .high = 1, .low_open = true},
                 .meaning = "The fraction of the samples, easiest first, that the first epoch uses. All epochs have "
                            "the same length."),
      DDPRUN_KEY(data.curriculum_epochs, .user = &kCurriculum, .range = {.low = 1},
                 .meaning = "The number of epochs in which this fraction grows linearly until it covers all samples."),
      DDPRUN_KEY(
          data.batch_weights, .user = &kDdp, .range = {1, 65536}, .default_note = "equal weights",
          .meaning =
              "Load balance: one weight per rank, as in `[2, 1]`. Each step's global batch is divided among the ranks "
              "by these weights. The samples of a step stay the same, so the result is the same up to rounding."),
      DDPRUN_KEY(data.balance_steps, .user = &kDdp, .range = {.low = 0},
                 .meaning =
                     "Load balance by measurement: after this number of steps, the measured speed of each rank becomes "
                     "its batch weight. The log and the summary (`samples_per_rank`) report the weights. 0: never."),
      DDPRUN_KEY(
          data.standardize,
          .meaning =
              "Subtracts the mean of each feature and divides by its standard deviation, both computed on the training "
              "set. A feature is a channel of an image, or else an element. The checkpoint stores both."),
      DDPRUN_KEY(data.validation, .form = Form::part, .range = {0, 1LL << 40},
                 .meaning =
                     "The validation set: this fraction of the training samples, or this number of them, drawn by "
                     "experiment.seed. They are not trained on. After each epoch the model is evaluated on them "
                     "(`validation.loss`, `validation.accuracy`). 0: none. See [training.md](training.md)."),
      DDPRUN_KEY(
          data.options,
          .meaning =
              "Options of the data set, passed on unchanged. Image data sets (mnist, fashion-mnist, idx, cifar10): "
              "`image_size` (antialiased, as in Pillow), `mean`, `std` (one number, or one per channel: `\"0.49, 0.48, "
              "0.45\"`), and for training `random_crop` (the padding) and `random_flip`; `samples` and `test_samples` "
              "limit the data to its first samples. idx: `classes` (default: the largest label plus one). cifar10: "
              "`train` and `test` name its files, as in `\"a.bin, b.bin\"`. image-folder: the options of image data "
              "sets without `samples` and `test_samples`, and `channels = 3` or `1` (grey). linear: `samples`, "
              "`test_samples`, `slope`, `intercept`, `noise`. synthetic: `shape = \"3x224x224\"`, `classes`, "
              "`samples`, `test_samples`. linear and synthetic: `seed` (default: experiment.seed)."),

      DDPRUN_KEY(optimizer.name, .words = {"sgd", "adam", "adamw"},
                 .meaning = "The optimizer, with the results of torch.optim."),
      DDPRUN_KEY(optimizer.lr, .range = {.low = 0}, .meaning = "Learning rate."),
      DDPRUN_KEY(optimizer.scale_lr, .words = {"none", "world"},
                 .meaning = "`\"world\"` multiplies lr by the number of ranks."),
      DDPRUN_KEY(optimizer.momentum, .user = &kSgd, .range = {.low = 0, .high = 1, .high_open = true},
                 .meaning = "Momentum."),
      DDPRUN_KEY(optimizer.nesterov, .user = &kSgd, .meaning = "Nesterov momentum; momentum must be above 0."),
      DDPRUN_KEY(optimizer.weight_decay, .range = {.low = 0},
                 .meaning = "Weight decay: an L2 penalty in sgd and adam, decoupled in adamw."),
      DDPRUN_KEY(optimizer.betas, .user = &kAdam, .range = {.low = 0, .high = 1, .high_open = true},
                 .meaning = "Decay rates of the two running averages."),
      DDPRUN_KEY(optimizer.eps, .user = &kAdam, .range = {.low = 0}, .meaning = "Added to the denominator."),
      DDPRUN_KEY(optimizer.fused,
                 .meaning = "true: one pass over each parameter, as with `fused=True` in torch.optim. false: operation "
                            "by operation, the default of torch.optim on a CPU. The two round differently."),

      DDPRUN_KEY(train.epochs, .range = {.low = 1}, .default_note = "1 where steps is not given",
                 .meaning = "Passes over the training set. Give epochs or steps, not both. If one is given with "
                            "`--set`, it replaces the other in the file."),
      DDPRUN_KEY(train.steps, .range = {.low = 1}, .default_note = "not given",
                 .meaning = "Optimizer steps, instead of epochs."),
      DDPRUN_KEY(
          train.evaluate,
          .meaning = "Evaluates on the validation set and on the full test set after each epoch and at the end."),
      DDPRUN_KEY(
          train.amp, .words = {"off", "bf16", "fp16"},
          .meaning =
              "Automatic mixed precision: forward and loss in bfloat16 or float16, by the rules of PyTorch's autocast; "
              "weights and gradients in float32. fp16 scales the loss, and skips a step if gradients overflow."),
      DDPRUN_KEY(
          train.channels_last,
          .meaning =
              "Stores images and convolution weights in PyTorch's channels_last format. Tensor cores, and oneDNN on a "
              "CPU, use this format directly. Sums have another order, so results round differently."),
      DDPRUN_KEY(train.cudnn_benchmark, .user = &kGpu,
                 .meaning = "cuDNN measures its convolution algorithms for each new shape and uses the fastest one. "
                            "The choice, and so the rounding, can differ between runs."),
      DDPRUN_KEY(train.deterministic,
                 .meaning =
                     "true: two runs of a config on the same hardware give the same bits, if `data.balance_steps` is "
                     "0. The plugin adds in a fixed order, and Torch uses deterministic kernels, which may be slower. "
                     "If an operation of the model has none, the run ends with an error. On a GPU, a config with "
                     "`cudnn_benchmark = true` is refused. On a CPU, runs are usually equal without it."),
      DDPRUN_KEY(train.cuda_graph, .user = &kGpu,
                 .meaning = "Captures a full step once as a CUDA graph and replays it, which costs less CPU time. The "
                            "model must have fixed shapes and control flow. For strategy single, and for ddp with "
                            "nccl. See [cuda-graphs.md](cuda-graphs.md)."),
      DDPRUN_KEY(train.accumulate, .range = {.low = 1},
                 .meaning = "Gradient accumulation: each rank splits its part of the batch into this number of "
                            "micro-batches, to use less memory. batch_size is still the batch of one optimizer step, "
                            "and the result is that of the whole batch."),
      DDPRUN_KEY(
          train.clip_norm, .range = {.low = 0},
          .meaning =
              "The maximum 2-norm of all gradients together, after they are averaged over the ranks. 0: no limit."),
      DDPRUN_KEY(train.check_gradients, .words = {"auto", "stop", "skip", "off"},
                 .meaning =
                     "What to do if a gradient is NaN or infinite after it is averaged. `\"stop\"`: the run ends with "
                     "an error that names the parameter. `\"skip\"`: the optimizer leaves out the step. In both cases "
                     "the weights stay as they are. `\"off\"`: no check. `\"auto\"`: `\"stop\"` on a CPU; `\"off\"` on "
                     "a GPU, where the check makes the host wait in each step."),
      DDPRUN_KEY(train.schedule, .words = {"none", "step", "cosine"},
                 .meaning = "How the learning rate decreases. `\"step\"`: after every `step_epochs` epochs. "
                            "`\"cosine\"`: in every step, from lr after warm-up to `min_lr` at the end of the run."),
      DDPRUN_KEY(train.warmup, .range = {.low = 0},
                 .meaning = "Warm-up steps, in which the learning rate grows linearly to lr, with any schedule."),
      DDPRUN_KEY(train.step_epochs, .user = &kStepSchedule, .range = {.low = 0},
                 .default_note = "the schedule step needs a value",
                 .meaning = "Epochs between two reductions of the learning rate."),
      DDPRUN_KEY(train.step_factor, .user = &kStepSchedule, .range = {.low = 0, .high = 1, .low_open = true},
                 .meaning = "The factor of each reduction of the learning rate."),
      DDPRUN_KEY(train.min_lr, .user = &kCosineSchedule, .range = {.low = 0},
                 .meaning = "The learning rate at the end. `scale_lr` does not change it."),
      DDPRUN_KEY(train.early_stop, .words = metrics,
                 .meaning = "Ends training when this metric has not improved for `patience` epochs."),
      DDPRUN_KEY(train.patience, .user = &kEarlyStop, .range = {.low = 1},
                 .meaning = "Training ends after this number of consecutive epochs without an improvement."),
      DDPRUN_KEY(
          train.min_delta, .user = &kEarlyStop, .range = {.low = 0},
          .meaning = "An epoch is an improvement only if its metric is better than the best so far by more than this."),

      DDPRUN_KEY(
          checkpoint.every_epochs, .range = {.low = 0},
          .meaning = "Epochs between checkpoints. 0: none after epochs. There is always a checkpoint at the end."),
      DDPRUN_KEY(checkpoint.every_steps, .range = {.low = 0},
                 .meaning = "Steps between further checkpoints, also in the middle of an epoch. 0: none."),
      DDPRUN_KEY(
          checkpoint.every_time, .form = Form::duration, .range = {0, 24 * 60 * 60},
          .meaning =
              "The time between further checkpoints, by the clock of rank 0, such as `\"10m\"`. `\"0s\"`: none."),
      DDPRUN_KEY(checkpoint.keep, .range = {.low = 1}, .count_word = "all",
                 .meaning = "The number of checkpoints to keep, newest first. `\"all\"`: none is removed."),
      DDPRUN_KEY(checkpoint.on_error, .words = {"stop", "warn"},
                 .meaning = "What to do if a checkpoint cannot be written, for example because the disk is full. "
                            "Earlier checkpoints stay as they are. `\"stop\"`: the run ends with an error. `\"warn\"`: "
                            "the run continues with a warning, and writes the next checkpoint when it is due."),
      DDPRUN_KEY(
          checkpoint.best, .words = metrics,
          .meaning =
              "The metric that decides which epoch is the best. best.safetensors holds the weights of that epoch."),
      DDPRUN_KEY(checkpoint.resume, .per_host = true,
                 .meaning = "The checkpoint to resume from: its file, a run folder (its newest checkpoint), or "
                            "`\"latest\"` (the newest checkpoint of the newest run of this name). `\"auto\"`: the "
                            "same, or a new run if there is none. See [checkpoints.md](checkpoints.md)."),

      DDPRUN_KEY(log.every, .range = {.low = 1}, .meaning = "Steps between two progress lines."),
      DDPRUN_KEY(log.level, .words = {"debug", "info", "warning", "error"},
                 .meaning = "Messages below this level are not logged."),
      DDPRUN_KEY(
          log.tensorboard,
          .meaning =
              "Rank 0 writes an event file of TensorBoard into the run folder while the run goes on: every log.every "
              "steps, and after each epoch. `--tensorboard` is short for this key. See [reports.md](reports.md)."),
      DDPRUN_KEY(
          log.trace_steps, .range = {.low = 1},
          .meaning =
              "Steps to trace. The trace shows the phases, the allreduce of each bucket and each operation of all "
              "ranks. It is trace/trace.json in the run folder; open it in chrome://tracing or ui.perfetto.dev."),
      DDPRUN_KEY(log.parity_steps, .range = {.low = 0},
                 .meaning =
                     "For this number of steps from the start, hash, norm and sketch of each parameter and its "
                     "gradient are recorded. `ddprun compare` then finds where two runs start to differ. 0: none."),

      DDPRUN_KEY(
          faults.kind,
          .words = {"none", "kill", "stop", "spin", "throw", "slow", "nan_gradient", "drop", "shape", "dtype", "op",
                    "order"},
          .meaning =
              "What the rank does. In the forward pass: `\"kill\"`: it sends itself SIGKILL. `\"stop\"`: it sends "
              "itself SIGSTOP. `\"spin\"`: it computes for ever. `\"throw\"`: it throws an exception. `\"slow\"`: it "
              "sleeps in this and all later steps. In the backward pass: `\"nan_gradient\"`: a gradient is NaN. In the "
              "first allreduce of the step, with ddp only: `\"drop\"`: it leaves the allreduce out. `\"shape\"`: it "
              "calls it with one element less. `\"dtype\"`: it calls it with integers. `\"op\"`: it calls it with the "
              "maximum. `\"order\"`: it gives the allreduce the index of the next bucket, as if two buckets of the "
              "same shape were swapped; `comm.check = \"off\"` does not see that."),
      DDPRUN_KEY(faults.rank, .user = &kFaults, .range = {.low = 0}, .meaning = "The rank that makes the fault."),
      DDPRUN_KEY(faults.step, .user = &kFaults, .range = {.low = 1},
                 .meaning = "The step of the fault, counted from 1."),
      DDPRUN_KEY(faults.seconds, .user = &kFaults, .range = {.low = 0, .high = 24 * 60 * 60, .low_open = true},
                 .meaning = "How long the rank sleeps in each step, with `\"slow\"`."),
  };
}

}  // namespace ddprun::config
