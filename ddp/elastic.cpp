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
  ElasticLoop(const Group& group, torch::nn::Module& module, torch::optim::Optimizer& optimizer,
              const DistributedDataParallelOptions& options, const Step& step, int64_t first)
      : group_(group),
        ranks_(checked(group, optimizer, options)),
        module_(module),
        optimizer_(optimizer),
        options_(options),
        step_(step),
        parameters_(train::trainable_parameters(module)) {
    at_.step = first;
    for (const auto& of_optimizer : optimizer.param_groups()) {
      for (const torch::Tensor& parameter : of_optimizer.params()) {
        const auto is_same = [&](const train::NamedTensor& item) { return item.tensor.is_same(parameter); };
        if (std::ranges::any_of(parameters_, is_same)) continue;
        refuse_elastic("the optimizer has a parameter that is not one of the module's");
      }
    }
    if (ranks_.job != nullptr) survivor_.emplace(*ranks_.job, ranks_.world.rank, ranks_.world.size);
  }

  bool run() {
    if (std::exchange(ranks_.has_trained, true)) refuse_elastic("it can be called once");
    if (ranks_.is_joining) {
      survivor_->join(ranks_.options.timeout, *launch::folder_store(ranks_.world.job_dir));
      if (!regroup(std::chrono::hours(24))) return false;  // until the others have ended their step
    }
    while (!train()) regroup(10 * ranks_.options.timeout);
    return true;
  }

 private:
  // False if the ranks have changed.
  bool train() {
    std::jthread watch;
    if (survivor_) watch = survivor_->members().watch([this] { ranks_.joined.backend->abort(); });
    std::optional<DistributedDataParallel> ddp;
    try {
      construct(ddp);
      elastic::VirtualRanks& virtual_ranks = *ddp->virtual_ranks();
      virtual_ranks.survive(at_.step);
      if (survivor_) survivor_->begin(at_);
      while (at_.epoch == 0) {
        const bool goes_on = step_(*ddp, at_.step);
        if (virtual_ranks.steps() != ++at_.step) {
          throw Error(ExitCode::failure, "train_elastic: a step must call for_each_virtual_rank() once");
        }
        at_.epoch = goes_on ? 0 : 1;
        if (!survivor_) continue;
        virtual_ranks.states().keep();
        survivor_->finish_step(at_);
        // For the error if the state of this kind of optimizer cannot be kept.
        if (!std::exchange(is_known_, true)) train::optimizer_state(optimizer_, parameters_);
        if (goes_on) survivor_->after_step(at_.step);
      }
      // A rank that waits here may still be asked for the state.
      group_.barrier();
      if (survivor_ && group_.rank() == 0) survivor_->end();
      return true;
    } catch (...) {
      const Error error = ddp::current_error();
      if (!survivor_ || !survivor_->goes_on(error, ranks_.joined.backend.get())) throw;
      if (!ddp) return false;
      if (ddp->virtual_ranks()->steps() != at_.step) {
        throw Error(
            ExitCode::failure,
            "train_elastic: a rank has died in a collective after for_each_virtual_rank(), and perhaps only some "
            "ranks have finished the step: call such a collective before for_each_virtual_rank()");
      }
      survivor_->keep(*ddp->virtual_ranks(), optimizer_, parameters_);
      return false;
    }
  }

  // Its random numbers follow from Torch's seed at first, also if a step has called torch::manual_seed().
  void construct(std::optional<DistributedDataParallel>& ddp) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const auto after = c10::make_scope_exit([&, before = generator.get_state()] { generator.set_state(before); });
    generator.set_current_seed(seed_);
    ddp.emplace(module_, group_, options_);
  }

  // After the ranks have changed: connects those that train now. patience: how long the others may take to end what
  // they do. False if the training has ended.
  bool regroup(std::chrono::milliseconds patience) {
    while (true) {
      ranks_.ranks = {};
      ranks_.joined = {};  // before its store
      ranks_.comm_thread = std::make_shared<train::WorkerThread>();
      try {
        if (!survivor_->meet(patience)) {
          ranks_.stay_out();
          return false;
        }
        const elastic::Membership& members = survivor_->members();
        ranks_.name = "-" + std::to_string(members.changes());
        ranks_.splits = ranks_.barriers = 0;
        ranks_.world.rank = members.rank();
        ranks_.world.size = members.size();
        ranks_.rendezvous.store = members.store();
        launch::locate(ranks_.world, *ranks_.rendezvous.store, ranks_.options.timeout);
        ranks_.join(ranks_.options);
        ranks_.is_joining = false;
        const std::jthread watch = members.watch([this] { ranks_.joined.backend->abort(); });
        survivor_->catch_up(module_, ranks_.ranks);
        const checkpoint::File file = std::move(survivor_->resume("").states.at(0));
        train::load_optimizer_state(optimizer_, parameters_, file, "optimizer.");
        at_ = train::read_position(file);
        if (members.rank() == 0) log::info(survivor_->text());
        return true;
      } catch (...) {
        if (!survivor_->goes_on(ddp::current_error(), ranks_.joined.backend.get())) throw;
      }
    }
  }

  const Group& group_;
  ddp::JoinedState& ranks_;
  torch::nn::Module& module_;
  torch::optim::Optimizer& optimizer_;
  const DistributedDataParallelOptions& options_;
  const Step& step_;
  const std::vector<train::NamedTensor> parameters_;
  std::optional<elastic::Survivor> survivor_;  // if there is a launcher that reports changes
  train::Position at_;                         // the epoch is 1 after the last step
  const uint64_t seed_ = at::detail::getDefaultCPUGenerator().current_seed();
  bool is_known_ = false;  // the kind of the optimizer
};

bool train_elastic(const Group& group, torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                   const DistributedDataParallelOptions& options, const Step& step, int64_t first) {
  return ElasticLoop(group, module, optimizer, options, step, first).run();
}

}  // namespace ddprun
