// The keys of launch, communication and strategy.
#include "cli/config/keys.hpp"

namespace ddprun::config {
namespace {

constexpr double max_seed = 4294967295.0;          // so that seed + epoch is in the range of every generator
constexpr double max_processes = 1024;             // on one host; more is probably a typing error
constexpr double max_bucket_cap_mb = 64 * 1024.0;  // MiB

}  // namespace

std::vector<Key> describe_running() {
  return {
      DDPRUN_KEY(schema_version, .range = {1, 1}, .meaning = "The version of this config format."),

      DDPRUN_KEY(experiment.name, .default_note = "the file's name without its extension",
                 .meaning = "The name of the run. The run folder is `<output>/<name>-<time>/`. A `/` is not allowed."),
      DDPRUN_KEY(experiment.seed, .range = {0, max_seed},
                 .meaning = "The seed of the initial weights, of the shuffling and of every other random number."),
      DDPRUN_KEY(experiment.output, .nonempty = true, .per_host = true,
                 .meaning = "The folder in which each run creates its run folder."),

      DDPRUN_KEY(
          launch.nproc, .user = &kDdp, .range = {1, max_processes}, .count_word = "auto", .per_host = true,
          .meaning =
              "The number of ranks on each host; each rank is a process. `\"auto\"`: one per core, or one per GPU with "
              "`device = \"cuda\"`. Not used if another launcher, such as torchrun, has started the ranks."),
      DDPRUN_KEY(
          launch.threads, .range = {0, 1024}, .per_host = true,
          .meaning = "Compute threads per rank. 0: the cores that the rank may use, divided by the ranks of the host "
                     "that may use them too. If they leave no core free, they sleep while they wait for one another "
                     "(`OMP_WAIT_POLICY=passive`), unless `OMP_WAIT_POLICY` or `GOMP_SPINCOUNT` is set."),
      DDPRUN_KEY(launch.device, .words = {"cpu", "cuda"},
                 .meaning = "Where the tensors are. `\"cuda\"`: on NVIDIA GPUs, one for each rank of ddp or each "
                            "device of dp. `\"cpu\"` loads no CUDA library."),
      DDPRUN_KEY(launch.devices, .user = &kGpu, .range = {0, max_processes - 1}, .per_host = true,
                 .default_note = "local rank i, or device i of dp, uses GPU i",
                 .meaning = "The GPU index for each local rank, or for each device of dp, as in `[0, 1]`. Indices "
                            "count the GPUs in `CUDA_VISIBLE_DEVICES`. Several ranks can use one GPU: `[0, 0]`."),
      DDPRUN_KEY(launch.timeout, .form = Form::duration, .range = kDurations,
                 .meaning = "How long ranks and nodes wait for each other at start-up."),
      DDPRUN_KEY(launch.grace, .user = &kDdp, .form = Form::duration, .range = kDurations, .per_host = true,
                 .meaning = "How long the ranks may take to stop and save after SIGINT, SIGTERM or SIGUSR1 to ddprun's "
                            "launcher. Then it kills them."),
      DDPRUN_KEY(launch.max_restarts, .user = &kDdp, .range = {0, 1000000},
                 .meaning = "How often ddprun's launcher starts all ranks again after a rank or a node has failed. "
                            "They resume from the newest checkpoint of the run."),
      DDPRUN_KEY(
          launch.insecure, .user = &kDdp,
          .meaning =
              "`true`: ranks of several hosts meet without a secret (`DDPRUN_SECRET`). For a network that you trust."),
      DDPRUN_KEY(launch.log_dir, .per_host = true, .default_note = "the run folder",
                 .meaning = "The folder for the log file of each rank."),

      DDPRUN_KEY(comm.backend, .user = &kDdp, .nonempty = true,
                 .meaning = "The communication plugin: a name (`\"gloo\"` finds libddprun_comm_gloo.so on the plugin "
                            "path) or a path."),
      DDPRUN_KEY(comm.algorithm, .user = &kDdp, .nonempty = true,
                 .meaning = "The allreduce algorithm: one that the plugin declares, such as `\"ring\"` or `\"tree\"`, "
                            "or `\"auto\"`: the plugin chooses for each call."),
      DDPRUN_KEY(comm.timeout, .user = &kDdp, .form = Form::duration, .range = kDurations,
                 .meaning = "The time limit of one collective. When it is exceeded, the job ends with exit code 5."),
      DDPRUN_KEY(
          comm.check, .user = &kDdp, .words = {"fingerprint", "off"},
          .meaning =
              "`\"fingerprint\"`: before each collective, the ranks compare its shape, dtype, operation, place in the "
              "order of collectives, and the index of a gradient bucket. If they differ, the job ends with an error."),
      DDPRUN_KEY(comm.stage_through_host, .user = &kDdp,
                 .meaning = "true: GPU tensors are copied through page-locked host memory if the backend supports host "
                            "memory only. false: such a backend is an error."),
      DDPRUN_KEY(comm.options, .user = &kDdp, .per_host_options = {"interface", "devices", "ib_hca", "debug_file"},
                 .meaning = "Options of the plugin: `ddprun plugins --verbose` lists them. Other ones are refused. The "
                            "file that `tuning` names may have another path on each host."),

      DDPRUN_KEY(
          strategy.kind, .words = {"single", "dp", "ddp"},
          .meaning =
              "`\"single\"`: one process, no communication. `\"dp\"`: one process with a replica on each device; one "
              "device gathers outputs and gradients, as in PyTorch's DataParallel. `\"ddp\"`: a replica on each rank; "
              "gradients are averaged while backward runs. [strategies.md](strategies.md) helps to choose."),
      DDPRUN_KEY(
          strategy.devices, .user = &kDp, .range = {1, max_processes},
          .meaning =
              "The number of replicas in the process; each batch is split among them. The first device also gathers "
              "outputs and gradients and runs the optimizer. On a CPU, a device is a group of launch.threads / devices "
              "compute threads, at least 1. With `launch.device = \"cuda\"` it is a GPU."),
      DDPRUN_KEY(strategy.bucket_cap_mb, .user = &kDdp,
                 .range = {.low = 0, .high = max_bucket_cap_mb, .low_open = true},
                 .meaning = "The size of a gradient bucket in MiB: a bucket closes when it reaches this size, the "
                            "first one already at 1 MiB, so that communication starts early in backward. In the first "
                            "step, one bucket holds all gradients."),
      DDPRUN_KEY(strategy.find_unused_parameters, .user = &kDdp,
                 .meaning = "What to do if parameters get no gradient in a step. `false`: end with an error that names "
                            "them. `true`: on a rank that does not use a parameter, its gradient counts as zero; a "
                            "parameter that no rank uses keeps its weights. This costs one small collective per step."),
      DDPRUN_KEY(
          strategy.broadcast_buffers, .user = &kDdp,
          .meaning = "Broadcasts the model's buffers (running statistics of BatchNorm) from rank 0 before each step."),
      DDPRUN_KEY(strategy.compression, .user = &kDdp, .words = {"none", "fp16", "bf16", "powersgd"},
                 .meaning = "How gradients are compressed for the allreduce. `\"fp16\"` and `\"bf16\"`: they are "
                            "rounded to 16 bits. `\"powersgd\"`: matrices are replaced by factors of a low rank "
                            "(Vogels et al. 2019); a resumed run starts it anew. [library.md](library.md) has more."),
      DDPRUN_KEY(strategy.powersgd_rank, .user = &kDdp, .range = {.low = 1},
                 .meaning = "The rank of the factors. Used with `compression = \"powersgd\"`."),
      DDPRUN_KEY(strategy.powersgd_start, .user = &kDdp, .range = {.low = 2},
                 .meaning = "The number of steps before PowerSGD starts. Used with `compression = \"powersgd\"`."),
      DDPRUN_KEY(
          strategy.zero, .user = &kDdp, .range = {0, 1},
          .meaning =
              "The stage of ZeRO. 1: each of N ranks keeps the optimizer's state of 1/N of the parameters, updates "
              "these, and broadcasts them. The weights are the same. 0: each rank keeps the whole state."),
      DDPRUN_KEY(strategy.hash_every, .user = &kDdp, .range = {.low = 0},
                 .meaning = "Steps between two checks that all ranks have the same parameters, by hash. 0: never."),
  };
}

}  // namespace ddprun::config
