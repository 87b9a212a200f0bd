// The keys of model, data and training.
#include "config/key_table.hpp"

namespace ddprun::config {

std::vector<Key> describe_learning() {
  return {
      DDPRUN_KEY(model.name)
          .must_be_given("name = \"simplenet\"")
          .doc("The model plugin: a path, or a name (`\"simplenet\"` finds libddprun_model_simplenet.so): "
               "`\"linear\"`, `\"simplenet\"`, `\"resnet18\"`, or yours."),
      DDPRUN_KEY(model.weights)
          .default_means("drawn from experiment.seed")
          .doc("A safetensors file with the initial weights, such as a checkpoint: each parameter and buffer of the "
               "model under PyTorch's names, in its shape and dtype, and nothing else. Relative to the current "
               "directory."),
      DDPRUN_KEY(model.options)
          .doc("Handed to the model as they are. simplenet: `hidden = 256`. resnet18: `stem = \"imagenet\"` (7x7 with "
               "stride 2, then pooling) or `\"small\"` (3x3, for images such as 32x32); `memory_format = "
               "\"contiguous\"` or `\"channels_last\"`. linear has none."),

      DDPRUN_KEY(data.name)
          .must_be_given("name = \"mnist\"")
          .doc("The data set: one that comes with ddprun (`\"mnist\"`; `ddprun plugins` lists them), or a plugin, by "
               "name (`\"image-folder\"` finds libddprun_dataset_image-folder.so) or path."),
      DDPRUN_KEY(data.root)
          .default_means("the data set's own")
          .doc("The folder that holds its files, relative to the current directory."),
      DDPRUN_KEY(data.batch_size)
          .between(1, 1 << 24)
          .doc("Samples in a batch: of all ranks together, or see batch_per."),
      DDPRUN_KEY(data.batch_per)
          .one_of({"global", "rank"})
          .doc("What batch_size counts. `\"global\"`: all ranks together, and they must divide it. `\"rank\"`: each "
               "rank."),
      DDPRUN_KEY(data.shuffle).used_by(User::shuffler).doc("A new order of the training samples in each epoch."),
      DDPRUN_KEY(data.workers)
          .in_form(Form::count_or_auto)
          .between(0, 256)
          .doc("Threads per rank that prepare batches ahead. 0: none, each when needed. `\"auto\"`: one per core that "
               "the rank may use, up to 8."),
      DDPRUN_KEY(data.prefetch).between(1, 1024).doc("Batches that each worker prepares ahead."),
      DDPRUN_KEY(data.pin_memory)
          .used_by(User::gpu)
          .doc(
              "Prepares batches in page-locked memory, from which they are copied to the GPU while it computes. false: "
              "in ordinary memory, where that much of the other cannot be had."),
      DDPRUN_KEY(data.last)
          .one_of({"pad", "drop", "exact"})
          .doc("Where the ranks do not divide the data set: `\"pad\"` repeats samples, as PyTorch does, `\"drop\"` "
               "leaves "
               "the rest out, `\"exact\"` does neither and weights gradients by the true counts."),
      DDPRUN_KEY(data.sampler)
          .one_of({"auto", "sequential", "random", "distributed", "curriculum"})
          .doc(
              "Who chooses the samples of a rank. `\"auto\"`: distributed under ddp, else random or sequential, as "
              "shuffle says. `\"curriculum\"`: distributed, from the easiest samples first. ddp refuses a sampler that "
              "does not share the data set out."),
      DDPRUN_KEY(data.difficulty)
          .used_by(User::curriculum)
          .not_empty()
          .doc("How difficult a sample is: `\"magnitude\"`, the mean absolute value of its input, or a text file with "
               "one "
               "number a line for each training sample, higher for more difficult."),
      DDPRUN_KEY(data.curriculum_start)
          .used_by(User::curriculum)
          .above(0, 1)
          .doc("The share of the samples, the easiest, that the first epoch draws from. An epoch keeps its length."),
      DDPRUN_KEY(data.curriculum_epochs)
          .used_by(User::curriculum)
          .at_least(1)
          .doc("After so many epochs, in which the share grows linearly, it is all of them."),
      DDPRUN_KEY(data.batch_weights)
          .used_by(User::ddp)
          .between(1, 65536)
          .default_means("equal weights")
          .doc("Load balance: one weight per rank, as in `[2, 1]`. Each step's global batch is divided among the ranks by "
               "these weights. The samples of a step stay the same, and so does the result, up to rounding."),
      DDPRUN_KEY(data.balance_steps)
          .used_by(User::ddp)
          .at_least(0)
          .doc("Load balance by measurement: after so many steps, the batch weights are the ranks' speeds in these steps. "
               "The log and the summary (`samples_per_rank`) report them. 0: never."),
      DDPRUN_KEY(data.standardize)
          .doc("Takes from each feature its mean and divides it by its standard deviation, both of the training set: "
               "one feature for each channel of a picture, else one for each element. Kept in the checkpoint."),
      DDPRUN_KEY(data.options)
          .doc("Handed to the data set as they are. Pictures (mnist, fashion-mnist, idx, cifar10): `image_size`, "
               "`resize = \"image\"` (antialiased, as Pillow) or `\"tensor\"`, `mean`, `std` (one number, or one per "
               "channel: `\"0.49, 0.48, 0.45\"`), and for training `random_crop` (the padding) and `random_flip`; "
               "`samples` and `test_samples` take the first so many. idx: `classes` (else one more than the largest "
               "label). cifar10: `train` and `test` name its files, as in `\"a.bin, b.bin\"`. image-folder: those of "
               "pictures but `samples` and `test_samples`, and `channels = 3` or `1` (grey). linear: `samples`, "
               "`test_samples`, `slope`, `intercept`, `noise`. synthetic: `shape = \"3x224x224\"`, `classes`, "
               "`samples`, `test_samples`. linear and synthetic: `seed`, else experiment.seed."),

      DDPRUN_KEY(optimizer.name).one_of({"sgd", "adam", "adamw"}).doc("As in torch.optim, and with its results."),
      DDPRUN_KEY(optimizer.lr).at_least(0).doc("Learning rate."),
      DDPRUN_KEY(optimizer.scale_lr).one_of({"none", "world"}).doc("`\"world\"` multiplies lr by the number of ranks."),
      DDPRUN_KEY(optimizer.momentum).used_by(User::sgd).from_to_below(0, 1).doc("Momentum."),
      DDPRUN_KEY(optimizer.nesterov).used_by(User::sgd).doc("Nesterov's form of it; needs momentum above 0."),
      DDPRUN_KEY(optimizer.weight_decay)
          .at_least(0)
          .doc("Decay of the weights: L2 for sgd and adam, decoupled for adamw."),
      DDPRUN_KEY(optimizer.betas).used_by(User::adam).from_to_below(0, 1).doc("Decay of the two running means."),
      DDPRUN_KEY(optimizer.eps).used_by(User::adam).at_least(0).doc("Added to the denominator."),
      DDPRUN_KEY(optimizer.fused)
          .doc("One pass over each parameter, as `fused=True` in torch.optim; false: operation by operation, as its "
               "default on CPU. The two round differently."),

      DDPRUN_KEY(train.epochs)
          .default_means("1 where steps is not given")
          .at_least(1)
          .doc("Passes over the training set. Give epochs or steps, not both; one given with `--set` replaces the "
               "other of "
               "the file."),
      DDPRUN_KEY(train.steps).default_means("not given").at_least(1).doc("Optimizer steps, in place of epochs."),
      DDPRUN_KEY(train.evaluate).doc("Evaluates on the whole test set after each epoch and at the end."),
      DDPRUN_KEY(train.amp)
          .one_of({"off", "bf16", "fp16"})
          .doc("Automatic mixed precision: forward and loss in bfloat16 or float16 where PyTorch's autocast has it so, "
               "weights and gradients in float32. fp16 scales the loss, and makes no step where gradients overflow."),
      DDPRUN_KEY(train.channels_last)
          .doc("Keeps pictures and the weights of convolutions with the channels innermost, which tensor cores, and "
               "oneDNN on a CPU, work on without reordering. Another order of summation, so other rounding."),
      DDPRUN_KEY(train.cudnn_benchmark)
          .used_by(User::gpu)
          .doc("Lets cuDNN time its convolution algorithms for each new shape and take the fastest. Which one that is "
               "can "
               "change from run to run, and with it the rounding."),
      DDPRUN_KEY(train.cuda_graph)
          .used_by(User::gpu)
          .doc("Records a full step once as a CUDA graph and replays it: less to do for the host, for models whose "
               "shapes and way through do not change. For strategy single, and ddp over nccl. See "
               "[cuda-graphs.md](cuda-graphs.md)."),
      DDPRUN_KEY(train.accumulate)
          .at_least(1)
          .doc("Gradient accumulation: each rank's part of the batch is run in so many micro-batches, one after "
               "another, for less memory. batch_size stays the batch of one optimizer step, and the result that of the "
               "whole batch."),
      DDPRUN_KEY(train.clip_norm)
          .at_least(0)
          .doc("Limit of the 2-norm of all gradients together, after they are averaged over the ranks. 0: no limit."),
      DDPRUN_KEY(train.schedule)
          .one_of({"none", "step", "cosine"})
          .doc("How the learning rate falls: `\"step\"` at the end of every `step_epochs` epochs, `\"cosine\"` in "
               "every step, from lr after warm-up to `min_lr` at the run's end."),
      DDPRUN_KEY(train.warmup)
          .at_least(0)
          .doc("Steps in which the learning rate grows linearly to lr, whatever the schedule."),
      DDPRUN_KEY(train.step_epochs)
          .used_by(User::step_schedule)
          .default_means("to be given with that schedule")
          .at_least(0)
          .doc("Epochs between two reductions of the learning rate."),
      DDPRUN_KEY(train.step_factor)
          .used_by(User::step_schedule)
          .above(0, 1)
          .doc("What each reduction multiplies it with."),
      DDPRUN_KEY(train.min_lr)
          .used_by(User::cosine_schedule)
          .at_least(0)
          .doc("The learning rate that it falls to. Not scaled by `scale_lr`."),
      DDPRUN_KEY(train.early_stop)
          .one_of({"", "test.loss", "test.accuracy", "train.loss"})
          .doc("Ends training when this metric has not improved for `patience` epochs."),
      DDPRUN_KEY(train.patience)
          .used_by(User::early_stop)
          .at_least(1)
          .doc("Epochs in a row without an improvement, the last of which ends training."),
      DDPRUN_KEY(train.min_delta)
          .used_by(User::early_stop)
          .at_least(0)
          .doc("By how much more than this an epoch must be better than the best so far to be an improvement."),

      DDPRUN_KEY(checkpoint.every).at_least(0).doc("Epochs between checkpoints. 0: only one at the end."),
      DDPRUN_KEY(checkpoint.keep).at_least(1).doc("The newest so many are kept."),
      DDPRUN_KEY(checkpoint.best)
          .one_of({"", "test.loss", "test.accuracy", "train.loss"})
          .doc("The metric that chooses the best epoch; its weights are also kept, in best.safetensors."),
      DDPRUN_KEY(checkpoint.resume)
          .doc("Resumes from a checkpoint: its file, a run folder (the newest in it), or `\"latest\"` (that of the "
               "newest "
               "run of this name). See [checkpoints.md](checkpoints.md)."),

      DDPRUN_KEY(log.every).at_least(1).doc("Steps between two lines of progress."),
      DDPRUN_KEY(log.level)
          .one_of({"debug", "info", "warning", "error"})
          .doc("Messages below this level are not logged."),
      DDPRUN_KEY(log.trace_steps)
          .at_least(1)
          .doc("Steps that are traced: their phases, every bucket's allreduce and every operation, of all ranks, in "
               "trace/trace.json of the run folder, which chrome://tracing and ui.perfetto.dev open."),
      DDPRUN_KEY(log.parity_steps)
          .at_least(0)
          .doc("Steps from the start for which the gradients and weights of every parameter are written down as hash, "
               "norm and sketch, so that `ddprun compare` finds where two runs part. 0: none."),
  };
}

}  // namespace ddprun::config
