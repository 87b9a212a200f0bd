// The keys of launch, communication and strategy.
#include "cli/config/key_table.hpp"

namespace ddprun::config {
namespace {

constexpr double max_seed = 4294967295.0;          // so that seed + epoch is in the range of every generator
constexpr double max_processes = 1024;             // on one host; more is probably a typing error
constexpr double max_bucket_cap_mb = 64 * 1024.0;  // MiB

}  // namespace

std::vector<Key> describe_running() {
  return {
      DDPRUN_KEY(schema_version).between(1, 1).doc("The version of this config format."),

      DDPRUN_KEY(experiment.name)
          .default_means("the file's name without its extension")
          .doc("The name of the run. The run folder is `<output>/<name>-<time>/`. A `/` is not allowed."),
      DDPRUN_KEY(experiment.seed)
          .between(0, max_seed)
          .doc("The seed of the initial weights, of the shuffling and of every other random number."),
      DDPRUN_KEY(experiment.output)
          .not_empty()
          .may_differ()
          .doc("The folder in which each run creates its run folder."),

      DDPRUN_KEY(launch.nproc)
          .may_differ()
          .used_by(User::ddp)
          .or_word("auto")
          .between(1, max_processes)
          .doc(
              "The number of ranks on each host; each rank is a process. `\"auto\"`: one per core, or one per GPU with "
              "`device = \"cuda\"`. Not used if another launcher, such as torchrun, has started the ranks."),
      DDPRUN_KEY(launch.threads)
          .may_differ()
          .between(0, 1024)
          .doc("Compute threads per rank. 0: the cores that the rank may use, divided by the ranks of the host that "
               "may use them too. If they leave no core free, they sleep while they wait for one another "
               "(`OMP_WAIT_POLICY=passive`), unless `OMP_WAIT_POLICY` or `GOMP_SPINCOUNT` is set."),
      DDPRUN_KEY(launch.device)
          .one_of({"cpu", "cuda"})
          .doc("Where the tensors are. `\"cuda\"`: on NVIDIA GPUs, one for each rank of ddp or each device of dp. "
               "`\"cpu\"` loads no CUDA library."),
      DDPRUN_KEY(launch.devices)
          .may_differ()
          .used_by(User::gpu)
          .between(0, max_processes - 1)
          .default_means("local rank i, or device i of dp, uses GPU i")
          .doc("The GPU index for each local rank, or for each device of dp, as in `[0, 1]`. Indices count the GPUs "
               "in `CUDA_VISIBLE_DEVICES`. Several ranks can use one GPU: `[0, 0]`."),
      DDPRUN_KEY(launch.timeout)
          .in_form(Form::duration)
          .doc("How long ranks and nodes wait for each other at start-up."),
      DDPRUN_KEY(launch.grace)
          .may_differ()
          .used_by(User::ddp)
          .in_form(Form::duration)
          .doc("How long the ranks may take to stop and save after SIGINT, SIGTERM or SIGUSR1 to ddprun's launcher. "
               "Then "
               "it kills them."),
      DDPRUN_KEY(launch.max_restarts)
          .used_by(User::ddp)
          .between(0, 1000000)
          .doc("How often ddprun's launcher starts all ranks again after a rank or a node has failed. They resume from "
               "the newest checkpoint of the run."),
      DDPRUN_KEY(launch.insecure)
          .used_by(User::ddp)
          .doc("`true`: ranks of several hosts meet without a secret (`DDPRUN_SECRET`). For a network that you trust."),
      DDPRUN_KEY(launch.log_dir)
          .may_differ()
          .default_means("the run folder")
          .doc("The folder for the log file of each rank."),

      DDPRUN_KEY(comm.backend)
          .used_by(User::ddp)
          .not_empty()
          .doc("The communication plugin: a name (`\"gloo\"` finds libddprun_comm_gloo.so on the plugin path) or a "
               "path."),
      DDPRUN_KEY(comm.algorithm)
          .used_by(User::ddp)
          .not_empty()
          .doc(
              "The allreduce algorithm: one that the plugin declares, such as `\"ring\"` or `\"tree\"`, or `\"auto\"`: "
              "the plugin chooses for each call."),
      DDPRUN_KEY(comm.timeout)
          .used_by(User::ddp)
          .in_form(Form::duration)
          .doc("The time limit of one collective. When it is exceeded, the job ends with exit code 5."),
      DDPRUN_KEY(comm.check)
          .used_by(User::ddp)
          .one_of({"fingerprint", "off"})
          .doc("`\"fingerprint\"`: before each collective, the ranks compare its shape, dtype, operation, place in the "
               "order of collectives, and the index of a gradient bucket. If they differ, the job ends with an error."),
      DDPRUN_KEY(comm.stage_through_host)
          .used_by(User::ddp)
          .doc("true: GPU tensors are copied through page-locked host memory if the backend supports host memory only. "
               "false: such a backend is an error."),
      DDPRUN_KEY(comm.options)
          .may_differ_in({"interface", "devices", "ib_hca", "debug_file"})
          .used_by(User::ddp)
          .doc("Options of the plugin: `ddprun plugins --verbose` lists them. Other ones are refused. The file that "
               "`tuning` names may have another path on each host."),

      DDPRUN_KEY(strategy.kind)
          .one_of({"single", "dp", "ddp"})
          .doc("`\"single\"`: one process, no communication. `\"dp\"`: one process with a replica on each device; one "
               "device gathers outputs and gradients, as in PyTorch's DataParallel. `\"ddp\"`: a replica on each rank; "
               "gradients are averaged while backward runs. [strategies.md](strategies.md) helps to choose."),
      DDPRUN_KEY(strategy.devices)
          .used_by(User::dp)
          .between(1, max_processes)
          .doc("The number of replicas in the process; each batch is split among them. The first device also gathers "
               "outputs and gradients and runs the optimizer. On a CPU, a device is a group of "
               "launch.threads / devices compute threads, at least 1. With `launch.device = \"cuda\"` it is a GPU."),
      DDPRUN_KEY(strategy.bucket_cap_mb)
          .used_by(User::ddp)
          .above(0, max_bucket_cap_mb)
          .doc("The size of a gradient bucket in MiB: a bucket closes when it reaches this size, the first one already "
               "at "
               "1 MiB, so that communication starts early in backward. In the first step, one bucket holds all "
               "gradients."),
      DDPRUN_KEY(strategy.find_unused_parameters)
          .used_by(User::ddp)
          .doc(
              "What to do if parameters get no gradient in a step. `false`: end with an error that names them. `true`: "
              "on a rank that does not use a parameter, its gradient counts as zero; a parameter that no rank uses "
              "keeps its weights. This costs one small collective per step."),
      DDPRUN_KEY(strategy.broadcast_buffers)
          .used_by(User::ddp)
          .doc("Broadcasts the model's buffers (running statistics of BatchNorm) from rank 0 before each step."),
      DDPRUN_KEY(strategy.compression)
          .used_by(User::ddp)
          .one_of({"none", "fp16", "bf16", "powersgd"})
          .doc(
              "How gradients are compressed for the allreduce. `\"fp16\"` and `\"bf16\"`: they are rounded to 16 bits. "
              "`\"powersgd\"`: matrices are replaced by factors of a low rank "
              "(Vogels et al. 2019); a resumed run starts it anew. [library.md](library.md) has more."),
      DDPRUN_KEY(strategy.powersgd_rank)
          .used_by(User::ddp)
          .at_least(1)
          .doc("The rank of the factors. Used with `compression = \"powersgd\"`."),
      DDPRUN_KEY(strategy.powersgd_start)
          .used_by(User::ddp)
          .at_least(2)
          .doc("The number of steps before PowerSGD starts. Used with `compression = \"powersgd\"`."),
      DDPRUN_KEY(strategy.zero)
          .used_by(User::ddp)
          .between(0, 1)
          .doc("The stage of ZeRO. 1: each of N ranks keeps the optimizer's state of 1/N of the parameters, updates "
               "these, and broadcasts them. The weights are the same. 0: each rank keeps the whole state."),
      DDPRUN_KEY(strategy.hash_every)
          .used_by(User::ddp)
          .at_least(0)
          .doc("Steps between two checks that all ranks have the same parameters, by hash. 0: never."),
  };
}

}  // namespace ddprun::config
