#include <ATen/CPUGeneratorImpl.h>
#include <c10/util/ScopeExit.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "ddp/joined_state.hpp"
#include "ddp/share.hpp"
#include "ddprun/ddp.hpp"
#include "ddprun/error.hpp"
#include "ddprun/zero.hpp"
#include "elastic/survivor.hpp"
#include "elastic/virtual_ranks.hpp"
#include "launch/rendezvous.hpp"
#include "train/optim/optimizers.hpp"

namespace ddprun {
namespace {

using Step = std::function<bool(DistributedDataParallel& ddp, int64_t n)>;

[[noreturn]] void refuse_elastic(const std::string& what) {
  throw Error(ExitCode::usage, "train_elastic: " + what);
}

ddp::JoinedState& checked(const Group& group, const torch::optim::Optimizer& optimizer,
                          const DistributedDataParallelOptions& options) {
  auto* const state = dynamic_cast<ddp::JoinedState*>(&group.state());
  if (state == nullptr || state->parent != nullptr) refuse_elastic("the group must be that of init()");
  if (!state->device.is_cpu())
    refuse_elastic("the group is on " + state->device.str() + ", and GPUs have not been tested");
  if (options.virtual_ranks == 0) refuse_elastic("set DistributedDataParallelOptions::virtual_ranks");
  if (!options.broadcast_buffers)
    refuse_elastic("not with broadcast_buffers = false: buffers would be lost with their rank");
  if (dynamic_cast<const ShardedOptimizer*>(&optimizer) != nullptr) {
    refuse_elastic("not with ZeroRedundancyOptimizer: a part of the state would be lost with its rank");
  }
  if (state->splits > 0) refuse_elastic("not with a group that was split: its parts would be lost with a rank");
  return *state;
}

}  // namespace

class ElasticLoop {
 public:
  bool run() {
    for (const auto& of_optimizer : optimizer.param_groups()) {
      for (const torch::Tensor& parameter : of_optimizer.params()) {
        const auto is_same = [&](const train::NamedTensor& item) { return item.tensor.is_same(parameter); };
        if (std::ranges::any_of(parameters, is_same)) continue;
        refuse_elastic("the optimizer has a parameter that is not one of the module's");
      }
    }
    if (ranks.job != nullptr) survivor.emplace(*ranks.job, ranks.world.rank, ranks.world.size);
    if (std::exchange(ranks.has_trained, true)) refuse_elastic("it can be called once");
    if (ranks.is_joining) {
      survivor->join(ranks.options.timeout, *launch::folder_store(ranks.world.job_dir));
      if (!regroup(std::chrono::hours(24))) return false;  // until the others have ended their step
    }
    while (!train()) regroup(10 * ranks.options.timeout);
    return true;
  }

  // False if the ranks have changed.
  bool train() {
    std::jthread watch;
    if (survivor) watch = survivor->members().watch([this] { ranks.joined.backend->abort(); });
    std::optional<DistributedDataParallel> ddp;
    try {
      construct(ddp);
      elastic::VirtualRanks& virtual_ranks = *ddp->virtual_ranks();
      virtual_ranks.survive(at.step);
      if (survivor) survivor->begin(at);
      while (at.epoch == 0) {
        const bool goes_on = step(*ddp, at.step);
        if (virtual_ranks.steps() != ++at.step) {
          throw Error(ExitCode::failure, "train_elastic: a step must call for_each_virtual_rank() once");
        }
        at.epoch = goes_on ? 0 : 1;
        if (!survivor) continue;
        virtual_ranks.states().keep();
        survivor->finish_step(at);
        // For the error if the state of this kind of optimizer cannot be kept.
        if (!std::exchange(is_known, true)) train::optimizer_state(optimizer, parameters);
        if (goes_on) survivor->after_step(at.step);
      }
      // A rank that waits here may still be asked for the state.
      group.barrier();
      if (survivor && group.rank() == 0) survivor->end();
      return true;
    } catch (...) {
      const Error error = ddp::current_error();
      if (!survivor || !survivor->goes_on(error, ranks.joined.backend.get())) throw;
      if (!ddp) return false;
      if (ddp->virtual_ranks()->steps() != at.step) {
        throw Error(
            ExitCode::failure,
            "train_elastic: a rank has died in a collective after for_each_virtual_rank(), and perhaps only some "
            "ranks have finished the step: call such a collective before for_each_virtual_rank()");
      }
      survivor->keep(*ddp->virtual_ranks(), optimizer, parameters);
      return false;
    }
  }

  // Its random numbers follow from Torch's seed at first, also if a step has called torch::manual_seed().
  void construct(std::optional<DistributedDataParallel>& ddp) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const auto after = c10::make_scope_exit([&, before = generator.get_state()] { generator.set_state(before); });
    generator.set_current_seed(seed);
    ddp.emplace(module, group, options);
  }

  // After the ranks have changed: connects those that train now. patience: how long the others may take to end what
  // they do. False if the training has ended.
  bool regroup(std::chrono::milliseconds patience) {
    while (true) {
      ranks.ranks = {};
      ranks.joined = {};  // before its store
      ranks.comm_thread = std::make_shared<train::WorkerThread>();
      try {
        if (!survivor->meet(patience)) {
          ranks.stay_out();
          return false;
        }
        const elastic::Membership& members = survivor->members();
        ranks.name = "-" + std::to_string(members.changes());
        ranks.splits = ranks.barriers = 0;
        ranks.world.rank = members.rank();
        ranks.world.size = members.size();
        ranks.rendezvous.store = members.store();
        launch::locate(ranks.world, *ranks.rendezvous.store, ranks.options.timeout);
        ranks.join(ranks.options);
        ranks.is_joining = false;
        const std::jthread watch = members.watch([this] { ranks.joined.backend->abort(); });
        survivor->catch_up(module, ranks.ranks);
        const checkpoint::File file = std::move(survivor->resume("").states.at(0));
        train::load_optimizer_state(optimizer, parameters, file, "optimizer.");
        at = train::read_position(file);
        if (members.rank() == 0) log::info(survivor->text());
        return true;
      } catch (...) {
        if (!survivor->goes_on(ddp::current_error(), ranks.joined.backend.get())) throw;
      }
    }
  }

  const Group& group;
  torch::nn::Module& module;
  torch::optim::Optimizer& optimizer;
  const DistributedDataParallelOptions& options;
  const Step& step;
  train::Position at;  // the epoch is 1 after the last step

  ddp::JoinedState& ranks = checked(group, optimizer, options);
  const std::vector<train::NamedTensor> parameters = train::trainable_parameters(module);
  std::optional<elastic::Survivor> survivor = {};  // if there is a launcher that reports changes
  const uint64_t seed = at::detail::getDefaultCPUGenerator().current_seed();
  bool is_known = false;  // the kind of the optimizer
};

bool train_elastic(const Group& group, torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                   const DistributedDataParallelOptions& options, const Step& step, int64_t first) {
  return ElasticLoop{group, module, optimizer, options, step, {first, 0, 0, {}, {}}}.run();
}

}  // namespace ddprun
