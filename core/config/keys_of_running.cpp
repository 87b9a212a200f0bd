// The keys of launch, communication and strategy.
#include "config/key_table.hpp"

namespace ddprun::config {
namespace {

constexpr double max_seed = 4294967295.0;      // the range of every generator, minus room for seed + epoch
constexpr double max_processes = 1024;         // on one host: more is probably a typing error
constexpr double max_bucket_mb = 64 * 1024.0;  // MiB

}  // namespace

std::vector<Key> describe_running() {
  return {
      DDPRUN_KEY(schema_version).between(1, 1).doc("The version of this scheme of keys."),

      DDPRUN_KEY(experiment.name)
          .default_means("the file's name without its ending")
          .doc("Names the run folder: `<output>/<name>-<time>/`. No `/`."),
      DDPRUN_KEY(experiment.seed)
          .between(0, max_seed)
          .doc("Seeds the initial weights, the shuffling and everything else that is random."),
      DDPRUN_KEY(experiment.output).not_empty().doc("The folder that run folders are made in."),

      DDPRUN_KEY(launch.nproc)
          .used_by(User::ddp)
          .in_form(Form::count_or_auto)
          .between(1, max_processes)
          .doc("Ranks on this host, each a process. `\"auto\"`: one per core, or with `device = \"cuda\"` one per GPU. "
               "A world size given from outside (torchrun) that contradicts it is an error."),
      DDPRUN_KEY(launch.threads).between(0, 1024).doc("Compute threads of each rank. 0: cores / nproc."),
      DDPRUN_KEY(launch.device)
          .one_of({"cpu", "cuda"})
          .doc("Where the tensors live: `\"cuda\"`, on this machine's NVIDIA GPUs, of which each rank, or each device "
               "of dp, "
               "has one. Libraries of CUDA are loaded for that alone."),
      DDPRUN_KEY(launch.devices)
          .used_by(User::gpu)
          .between(0, max_processes - 1)
          .default_means("the GPU of its number for each")
          .doc("The GPU of each rank of this host, or of each device of dp, as in `[0, 1]`, by the numbers that CUDA "
               "gives "
               "them (`CUDA_VISIBLE_DEVICES` counts). One may serve several: `[0, 0]`."),
      DDPRUN_KEY(launch.timeout).in_form(Form::duration).doc("How long the ranks wait for one another at the start."),
      DDPRUN_KEY(launch.log_dir).default_means("the run folder").doc("Where each rank's log is written."),

      DDPRUN_KEY(comm.backend)
          .used_by(User::ddp)
          .not_empty()
          .doc("The communication plugin: a name (`\"gloo\"` finds libddprun_comm_gloo.so on the plugin path) or a "
               "path."),
      DDPRUN_KEY(comm.algorithm)
          .used_by(User::ddp)
          .not_empty()
          .doc(
              "The allreduce algorithm: one that the plugin declares, such as `\"ring\"` or `\"tree\"`, or `\"auto\"`, "
              "which leaves the choice to the plugin, call by call."),
      DDPRUN_KEY(comm.timeout)
          .used_by(User::ddp)
          .in_form(Form::duration)
          .doc("The deadline of one collective; past it the job ends with exit code 5."),
      DDPRUN_KEY(comm.deterministic)
          .used_by(User::ddp)
          .doc("Asks the plugin for results that are the same, bit for bit, in every run."),
      DDPRUN_KEY(comm.check)
          .used_by(User::ddp)
          .one_of({"fingerprint", "off"})
          .doc("`\"fingerprint\"`: before the data moves, the ranks compare what they are about to do (shape, dtype, "
               "operation, order), and stop where they differ."),
      DDPRUN_KEY(comm.stage_through_host)
          .used_by(User::ddp)
          .doc("true: tensors on a GPU reach a backend that takes host memory through page-locked copies there. false: "
               "the backend has to take CUDA memory, and is refused where it does not."),
      DDPRUN_KEY(comm.options)
          .used_by(User::ddp)
          .doc("Handed to the plugin as they are; the plugin refuses what it does not know."),

      DDPRUN_KEY(strategy.kind)
          .one_of({"single", "dp", "ddp"})
          .doc("`\"single\"`: one process, no communication. `\"dp\"`: one process with a replica on each device, one "
               "of which gathers outputs and gradients, as PyTorch's DataParallel. `\"ddp\"`: a replica on each rank, "
               "gradients averaged while backward goes on. [strategies.md](strategies.md) helps to choose."),
      DDPRUN_KEY(strategy.devices)
          .used_by(User::dp)
          .between(1, max_processes)
          .doc("Replicas in the one process, among which each batch is cut. On a CPU a device is a group of compute "
               "threads: launch.threads / devices, at least 1. With `launch.device = \"cuda\"` each is a GPU."),
      DDPRUN_KEY(strategy.main_device)
          .used_by(User::dp)
          .between(0, max_processes - 1)
          .doc("The device, from 0, that holds the model, gathers and takes the optimizer's steps. Below devices."),
      DDPRUN_KEY(strategy.bucket_mb)
          .used_by(User::ddp)
          .above(0, max_bucket_mb)
          .doc("Size in MiB of the buckets in which gradients travel: a bucket closes when it holds so much, or more. "
               "In the first step all are in one."),
      DDPRUN_KEY(strategy.first_bucket_mb)
          .used_by(User::ddp)
          .above(0, max_bucket_mb)
          .doc("Size in MiB of the first bucket: a small one starts communication early in backward."),
      DDPRUN_KEY(strategy.unused)
          .used_by(User::ddp)
          .one_of({"error", "zero"})
          .doc("Parameters that got no gradient in a step: `\"error\"` names them and stops, `\"zero\"` takes zeros."),
      DDPRUN_KEY(strategy.sync_buffers)
          .used_by(User::ddp)
          .doc("Broadcasts the model's buffers (BatchNorm's running statistics) from rank 0 before each step."),
      DDPRUN_KEY(strategy.hash_every)
          .used_by(User::ddp)
          .at_least(0)
          .doc("Compares a hash of all parameters across the ranks every so many steps. 0: never."),
  };
}

}  // namespace ddprun::config
