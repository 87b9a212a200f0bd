#include "ddprun/zero.hpp"

#include <c10/util/ScopeExit.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ddp/group_state.hpp"
#include "ddp/share.hpp"
#include "ddprun/error.hpp"
#include "train/optim/optimizers.hpp"
#include "train/tensor/replicas.hpp"

namespace ddprun {
namespace {

namespace optim = torch::optim;
using torch::Tensor;

// Copying costs less than a collective of its own up to about this size.
constexpr std::size_t kSmallBytes = 1 << 20;

void* key_of(const Tensor& parameter) {
  return parameter.unsafeGetTensorImpl();
}

// The parameter's memory, in memory order: collectives on bytes work for every dtype and layout.
Tensor memory_of(const Tensor& parameter) {
  return parameter.detach().as_strided({parameter.numel()}, {1}).view(torch::kUInt8);
}

std::string name_of(std::size_t index) {
  return "optimizer parameter " + std::to_string(index);
}

std::vector<train::NamedTensor> named(const std::vector<Tensor>& parameters) {
  std::vector<train::NamedTensor> list;
  for (const Tensor& parameter : parameters) {
    const std::string name = name_of(list.size());
    if (!parameter.is_non_overlapping_and_dense()) {
      throw Error(ExitCode::usage,
                  "ZeroRedundancyOptimizer: " + name + " is sparse or has gaps in memory; use parameter.contiguous()");
    }
    list.push_back({name, parameter});
  }
  return list;
}

bool have_same_form(const Tensor& a, const Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         (a.strides() == b.strides() || (a.is_contiguous() && b.is_contiguous()));
}

}  // namespace

ShardedOptimizer::ShardedOptimizer(const Groups& groups, const Group& group, Make make)
    : ShardedOptimizer(*make(groups), group, make) {}

// `whole` has completed the options of the groups.
ShardedOptimizer::ShardedOptimizer(const optim::Optimizer& whole, Group group, Make make)
    : Optimizer(whole.param_groups(), whole.defaults().clone()), group_(std::move(group)), make_(std::move(make)) {
  partition();
}

ShardedOptimizer::~ShardedOptimizer() = default;

void ShardedOptimizer::partition() {
  const auto parameters = named(train::parameters_of(*this));
  ddp::require_same_tensors(group_.state().ranks, parameters);
  const auto before = std::exchange(owners_, {});
  std::vector<int64_t> sizes(static_cast<std::size_t>(group_.size()));
  for (const auto& group : param_groups_) {
    std::vector<Tensor> sorted = group.params();
    std::ranges::stable_sort(sorted, {}, [](const Tensor& parameter) { return -parameter.numel(); });
    for (const Tensor& parameter : sorted) {
      const auto smallest = std::ranges::min_element(sizes);
      *smallest += parameter.numel();
      owners_[key_of(parameter)] = static_cast<int>(smallest - sizes.begin());
    }
  }
  for (const auto& [parameter, owner] : before) {
    const auto now = owners_.find(parameter);
    if (now != owners_.end() && now->second == owner) continue;
    throw Error(ExitCode::usage,
                "ZeroRedundancyOptimizer: the parameters of a group have changed; add new ones with add_param_group()");
  }
  seen_.clear();
  for (const auto& [name, tensor] : parameters) {
    const auto options = torch::TensorOptions(torch::kMeta).dtype(tensor.scalar_type());
    seen_.push_back({key_of(tensor), torch::empty_strided(tensor.sizes(), tensor.strides(), options)});
  }
  local_ = make_(groups_of(group_.rank()));
  for (auto& [parameter, state] : local_->state()) state_.emplace(parameter, std::move(state));  // Adagrad has it now
  local_->state().clear();
}

void ShardedOptimizer::require_unchanged() const {
  const std::vector<Tensor> parameters = train::parameters_of(*this);
  for (std::size_t i = 0; i < std::min(parameters.size(), seen_.size()); ++i) {
    const Tensor &now = parameters[i], &before = seen_[i].form;
    if (key_of(now) != seen_[i].parameter) {
      throw Error(ExitCode::usage, "ZeroRedundancyOptimizer: " + name_of(i) +
                                       " is another tensor now; add new ones with add_param_group()");
    }
    if (have_same_form(now, before)) continue;
    throw Error(ExitCode::usage, "ZeroRedundancyOptimizer: " + name_of(i) + " was " + ddp::form_of(before) +
                                     " and is now " + ddp::form_of(now) +
                                     "; construct the optimizer after such a change");
  }
}

ShardedOptimizer::Groups ShardedOptimizer::groups_of(int rank) const {
  Groups groups = param_groups_;
  for (auto& group : groups) {
    std::erase_if(group.params(), [&](const Tensor& parameter) { return owner(parameter) != rank; });
  }
  return groups;
}

int ShardedOptimizer::owner(const Tensor& parameter) const {
  const auto found = owners_.find(key_of(parameter));
  if (found == owners_.end())
    throw Error(ExitCode::usage, "ZeroRedundancyOptimizer: not a parameter of this optimizer");
  return found->second;
}

Tensor ShardedOptimizer::step(LossClosure closure) {
  require_unchanged();
  if (train::parameters_of(*this).size() != seen_.size()) partition();  // after add_param_group()
  drop_state_of_others();
  for (std::size_t index = 0; index < param_groups_.size(); ++index) {
    local_->param_groups()[index].set_options(param_groups_[index].options().clone());
  }
  Tensor loss;
  {
    state_.swap(local_->state());
    const auto back = c10::make_scope_exit([&] { state_.swap(local_->state()); });  // whatever the step throws
    loss = local_->step(std::move(closure));
  }
  broadcast_parameters();
  return loss;
}

void ShardedOptimizer::drop_state_of_others() {
  consolidated_ = false;
  for (const auto& [parameter, owner] : owners_) {
    if (owner != group_.rank()) state_.erase(const_cast<void*>(parameter));
  }
}

void ShardedOptimizer::broadcast_parameters() {
  if (group_.size() == 1) return;
  const torch::NoGradGuard no_grad;
  for (int rank = 0; rank < group_.size(); ++rank) {
    std::vector<train::NamedTensor> small;
    for (const auto& group : param_groups_) {
      for (const Tensor& parameter : group.params()) {
        // A frozen parameter does not change.
        const bool changes = parameter.requires_grad() || parameter.grad().defined();
        if (!changes || parameter.numel() == 0 || owner(parameter) != rank) continue;
        if (parameter.nbytes() < kSmallBytes) {
          small.push_back({"", parameter});
        } else {
          group_.broadcast(memory_of(parameter), rank);
        }
        parameter.unsafeGetTensorImpl()->bump_version();  // autograd does not see the broadcast
      }
    }
    train::broadcast_tensors(group_.state().idle_ranks(), small, rank);
  }
}

std::unique_ptr<optim::Optimizer> ShardedOptimizer::with_state(const Groups& groups) const {
  auto made = make_(groups);
  for (const auto& group : groups) {
    for (const Tensor& parameter : group.params()) {
      const auto found = state_.find(key_of(parameter));
      if (found != state_.end()) made->state()[found->first] = found->second->clone();  // shares the tensors
    }
  }
  return made;
}

void ShardedOptimizer::take_state(optim::Optimizer& optimizer) {
  for (auto& [parameter, state] : optimizer.state()) state_[parameter] = std::move(state);
}

void ShardedOptimizer::consolidate_state_dict(int to) {
  if (to < 0 || to >= group_.size()) {
    throw Error(ExitCode::usage, "consolidate_state_dict(" + std::to_string(to) + "): expected a rank from 0 to " +
                                     std::to_string(group_.size() - 1));
  }
  const comm::Group& ranks = group_.state().idle_ranks();
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (rank == to) continue;
    std::vector<char> bytes;
    if (rank == group_.rank()) {
      torch::serialize::OutputArchive archive;
      with_state(groups_of(rank))->save(archive);
      archive.save_to([&](const void* data, std::size_t size) {
        bytes.insert(bytes.end(), static_cast<const char*>(data), static_cast<const char*>(data) + size);
        return size;
      });
    }
    bytes = ranks.from(rank, std::move(bytes));
    if (group_.rank() != to) continue;
    torch::serialize::InputArchive archive;
    archive.load_from(bytes.data(), bytes.size(), torch::kCPU);
    const auto part = make_(groups_of(rank));
    part->load(archive);
    take_state(*part);
  }
  consolidated_ = group_.rank() == to;
}

void ShardedOptimizer::require_whole_state() const {
  if (consolidated_ || group_.size() == 1) return;
  throw Error(ExitCode::usage, "ZeroRedundancyOptimizer: rank " + std::to_string(group_.rank()) +
                                   " of its group has only its part of the state; call consolidate_state_dict(" +
                                   std::to_string(group_.rank()) +
                                   ") on all ranks before save(), and give save_checkpoint the optimizer's group");
}

void ShardedOptimizer::save(torch::serialize::OutputArchive& archive) const {
  require_whole_state();
  with_state(param_groups_)->save(archive);
}

void ShardedOptimizer::load(torch::serialize::InputArchive& archive) {
  const auto whole = make_(param_groups_);
  whole->load(archive);
  state_.clear();
  take_state(*whole);
  for (std::size_t index = 0; index < param_groups_.size(); ++index) {
    param_groups_[index].set_options(whole->param_groups()[index].options().clone());
  }
  drop_state_of_others();
}

}  // namespace ddprun
