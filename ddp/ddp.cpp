#include "ddprun/ddp.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/record_function.h>
#include <c10/util/ScopeExit.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/jit/api/module.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "ddp/joined_state.hpp"
#include "ddp/module_watch.hpp"
#include "ddp/share.hpp"
#include "ddprun/error.hpp"
#include "elastic/virtual_ranks.hpp"
#include "train/loop/program_steps.hpp"
#include "train/reduce/gradient_sync.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun {
namespace {

std::size_t bytes_of(double mib) {
  if (!(mib > 0) || mib > 1e6) throw Error(ExitCode::usage, "bucket_cap_mb: expected a number above 0, at most 1e6");
  return static_cast<std::size_t>(std::ceil(mib * (1 << 20)));
}

train::GradientSyncOptions sync_options(const DistributedDataParallelOptions& options, const Group& group) {
  const std::size_t bytes = bytes_of(options.bucket_cap_mb);
  return {.reducer = {.bucket_bytes = bytes,
                      .first_bucket_bytes = std::min(train::ReducerOptions().first_bucket_bytes, bytes),
                      .find_unused_parameters = options.find_unused_parameters,
                      .static_graph = options.static_graph,
                      .unused_advice = "set find_unused_parameters",
                      .twice_advice = "set static_graph if the model uses activation checkpointing",
                      .gradient_as_bucket_view = options.gradient_as_bucket_view,
                      .comm_thread = group.state().comm_thread},
          .broadcast_buffers = options.broadcast_buffers};
}

// A line per option.
std::string text_of(const DistributedDataParallelOptions& options) {
  std::ostringstream text;
  text << std::boolalpha << "bucket_cap_mb = " << options.bucket_cap_mb
       << "\nbroadcast_buffers = " << options.broadcast_buffers
       << "\nfind_unused_parameters = " << options.find_unused_parameters
       << "\ngradient_as_bucket_view = " << options.gradient_as_bucket_view
       << "\nstatic_graph = " << options.static_graph << "\nvirtual_ranks = " << options.virtual_ranks;
  if (options.virtual_ranks > 0) text << "\nTorch's seed = " << at::detail::getDefaultCPUGenerator().current_seed();
  return text.str();
}

train::ModelTensors tensors_of(const torch::jit::Module& module) {
  const auto list_of = [](const auto& items) {
    std::vector<train::NamedTensor> list;
    for (const auto& item : items) {
      if (item.value.defined()) list.push_back({item.name, item.value});
    }
    return list;
  };
  return {[=] { return list_of(module.named_parameters()); }, [=] { return list_of(module.named_buffers()); }};
}

train::ModelTensors tensors_of(const std::vector<torch::Tensor>& parameters) {
  std::vector<train::NamedTensor> list;
  for (const torch::Tensor& tensor : parameters) {
    if (!tensor.defined() || !tensor.is_leaf()) {
      throw Error(ExitCode::usage, "parameter " + std::to_string(list.size()) + " of DistributedDataParallel is " +
                                       (tensor.defined() ? "the result of a computation" : "undefined") +
                                       ": expected a leaf of the graph, such as torch::randn({3}).requires_grad_()");
    }
    list.push_back({std::to_string(list.size()), tensor});
  }
  return {[=] { return list; }, [] { return std::vector<train::NamedTensor>(); }};
}

train::ModelTensors same_on_all_ranks(train::ModelTensors model, const DistributedDataParallelOptions& options,
                                      const Group& group) {
  const auto state = train::state(model);
  for (const train::NamedTensor& item : state) {
    if (item.tensor.device() == group.state().device) continue;
    throw Error(ExitCode::usage, "\"" + item.name + "\" is on " + item.tensor.device().str() +
                                     ", but the group is on " + group.state().device.str() +
                                     ": call module.to(device) first");
  }
  ddp::require_same_lines(group.state().ranks, "DistributedDataParallelOptions", text_of(options));
  ddp::require_same_tensors(group.state().ranks, state);
  return model;
}

// Runs `end` at the end of the outermost backward that this thread is in; what it throws leaves backward(). Runs
// `abandon`, which must not throw, if backward ends with an exception before.
void at_end_of_backward(std::function<void()> end, std::function<void()> abandon) {
  // Autograd's graph of one backward owns it. It dies with this backward, and thus inside of the outer one.
  struct AfterBackward {
    ~AfterBackward() {
      if (inside_another) at_end_of_backward(end, abandon);
      if (!has_ended) abandon();
    }
    std::function<void()> end, abandon;
    bool has_ended = false, inside_another = false;
  };
  const auto after = std::make_shared<AfterBackward>();
  after->end = std::move(end);
  after->abandon = std::move(abandon);
  torch::autograd::Engine::get_default_engine().queue_callback([after] {
    after->has_ended = true;
    // A node that is being computed, although this backward has ended, has started it.
    after->inside_another = torch::autograd::get_current_node() != nullptr;
    if (!after->inside_another) after->end();
  });
}

// Under `ddprun compare`: the steps of the first DistributedDataParallel over all ranks.
train::ProgramSteps* recorded = nullptr;

std::unique_ptr<at::ObserverContext> at_node_of_backward(const at::RecordFunction&) {
  static std::weak_ptr<int> known;  // the backward that is running
  if (recorded == nullptr || !known.expired()) return nullptr;
  recorded->begin_backward();
  // Queued first of all: autograd calls it before end_backward().
  const auto running = std::make_shared<int>();
  torch::autograd::Engine::get_default_engine().queue_callback([running] {
    if (recorded != nullptr) recorded->end_gradients();
  });
  known = running;
  return nullptr;
}

void start_recording(train::ProgramSteps& steps) {
  recorded = &steps;
  using at::RecordFunctionCallback, at::RecordScope;
  [[maybe_unused]] static const at::CallbackHandle once =
      at::addGlobalCallback(RecordFunctionCallback(at_node_of_backward).scopes({RecordScope::BACKWARD_FUNCTION}));
}

// In rank order.
std::vector<uint8_t> gather(const Group& group, bool flag) {
  return group.state().idle_ranks().gather(std::vector<uint8_t>{flag});
}

int last_in(const std::vector<uint8_t>& flags) {
  return static_cast<int>(flags.rend() - std::find(flags.rbegin(), flags.rend(), 1)) - 1;
}

}  // namespace

// The first gradient of a backward that autograd reports queues the callback that ends the backward.
class DistributedDataParallel::Impl {
 public:
  Impl(const train::ModelTensors& model, const Group& group, const DistributedDataParallelOptions& options)
      : group_(group),
        sync_(same_on_all_ranks(model, options, group), group.state().ranks, sync_options(options, group)),
        watch_(model, sync_.parameters()) {
    sync_.broadcast_state();
    sync_.set_on_phase([this](Phase phase, int bucket) { progress(phase, bucket); });
    sync_.hooks().set_on_first([this] { begin_backward(); });
    if (options.virtual_ranks != 0) {
      const bool synchronizes = ddp::are_synchronized(train::state(model), group);
      if (synchronizes && !group.state().device.is_cpu()) {
        throw Error(ExitCode::usage, "virtual_ranks: not possible with a SyncBatchNorm on a GPU");
      }
      const elastic::VirtualRanksOptions virtual_ranks{
          .count = options.virtual_ranks,
          .find_unused_parameters = options.find_unused_parameters || options.static_graph,
          .own_buffers = !options.broadcast_buffers,
          .gpus = {group.state().device},
          .in_program = true,
          .gather_rows = synchronizes ? &group.state().gather_rows : nullptr};
      virtual_.emplace(model, sync_, group.state().ranks, virtual_ranks);
      virtual_->seed(at::detail::getDefaultCPUGenerator().current_seed());
    }
    const char *const folder = std::getenv("DDPRUN_RECORD"), *const parity = std::getenv("DDPRUN_RECORD_PARITY");
    const auto* const joined = dynamic_cast<const ddp::JoinedState*>(&group.state());
    if (folder != nullptr && recorded == nullptr && joined != nullptr && joined->parent == nullptr) {
      const int64_t parity_steps = parity == nullptr ? 0 : std::atoll(parity);
      start_recording(steps_.emplace(folder, parity_steps, group.state().ranks, sync_.parameters()));
    }
  }

  ~Impl() {
    if (!steps_) return;
    recorded = nullptr;
    if (const auto error = ddp::error_of([&] { steps_->end(); })) log::error(error->what());
  }

  void join(const std::function<void()>& loop, JoinOptions options) {
    if (virtual_) throw Error(ExitCode::usage, "join: not with virtual_ranks");
    if (has_hook_ && !options.divide_by_initial_world_size) {
      throw Error(ExitCode::usage, "join: divide_by_initial_world_size must be true with a communication hook");
    }
    joining_ = std::move(options);
    const auto after = c10::make_scope_exit([&] {
      joining_.reset();
      root_ = 0;
      sync_.reducer().set_divisor(has_hook_ ? 1 : group_.size());
    });
    loop();
    bool is_last = true;
    for (; count_active(false) > 0; is_last = false) {
      sync_.reducer().finalize_zeros();
      sync_.broadcast_buffers(root_);
      if (joining_->after_backward) joining_->after_backward();
    }
    // All ranks that had the most steps have the same weights.
    sync_.broadcast_state(last_in(gather(group_, is_last)));
  }

  void begin_backward() {
    watch_.require_unchanged();
    if (!virtual_) ++step_;
    progress(Phase::backward);
    at_end_of_backward([this] { end_backward(); },
                       // On a GPU, autograd's thread may release the graph after this object has been destroyed.
                       [this, alive = std::weak_ptr<bool>(alive_)] {
                         if (!alive.expired()) sync_.abandon();
                       });
    if (joining_) count_active(true);
  }

  // Within backward(), after the last gradient.
  void end_backward() {
    virtual_ ? virtual_->finalize() : sync_.finalize();
    if (!virtual_) sync_.broadcast_buffers(root_);
    if (steps_) steps_->end_step();
    progress(Phase::optimizer);
  }

  // In join: the ranks that still have inputs. Once per step, before any other collective of the step.
  int count_active(bool is_active) {
    const auto active = gather(group_, is_active);
    const auto count = static_cast<int>(std::count(active.begin(), active.end(), 1));
    if (count == 0) return 0;
    if (count < group_.size() && joining_->throw_on_early_termination) {
      throw Error(ExitCode::failure, "join: rank " +
                                         std::to_string(std::find(active.begin(), active.end(), 0) - active.begin()) +
                                         " has no more inputs, but others have");
    }
    root_ = last_in(active);
    if (!joining_->divide_by_initial_world_size) sync_.reducer().set_divisor(count);
    return count;
  }

  void progress(Phase phase, int bucket = -1) const { group_.state().set_progress({step_, phase, bucket}); }

  const Group group_;
  std::optional<elastic::VirtualRanks> virtual_;
  train::GradientSync sync_;
  const ddp::ModuleWatch watch_;
  std::optional<train::ProgramSteps> steps_;  // recorded
  int64_t step_ = 0;
  bool has_hook_ = false;
  std::optional<JoinOptions> joining_;  // while join() runs
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  int root_ = 0;  // whose buffers count; in join, as in PyTorch, the last rank that has inputs
};

DistributedDataParallel::DistributedDataParallel(torch::nn::Module& module, const Group& group,
                                                 DistributedDataParallelOptions options)
    : impl_(std::make_unique<Impl>(train::tensors_of(module), group, options)) {}

DistributedDataParallel::DistributedDataParallel(const torch::jit::Module& module, const Group& group,
                                                 DistributedDataParallelOptions options)
    : impl_(std::make_unique<Impl>(tensors_of(module), group, options)) {}

DistributedDataParallel::DistributedDataParallel(const std::vector<torch::Tensor>& parameters, const Group& group,
                                                 DistributedDataParallelOptions options)
    : impl_(std::make_unique<Impl>(tensors_of(parameters), group, options)) {}

DistributedDataParallel::~DistributedDataParallel() = default;
DistributedDataParallel::DistributedDataParallel(DistributedDataParallel&&) noexcept = default;
DistributedDataParallel& DistributedDataParallel::operator=(DistributedDataParallel&&) noexcept = default;

elastic::VirtualRanks* DistributedDataParallel::virtual_ranks() const {
  return impl_->virtual_ ? &*impl_->virtual_ : nullptr;
}

void DistributedDataParallel::register_comm_hook(CommHook hook) {
  if (!hook) throw Error(ExitCode::usage, "register_comm_hook: the hook has no stage reduce");
  if (impl_->virtual_) throw Error(ExitCode::usage, "register_comm_hook: not with virtual_ranks");
  if (std::exchange(impl_->has_hook_, true)) {
    throw Error(ExitCode::usage, "register_comm_hook: there is a hook already");
  }
  ddp::register_comm_hook(impl_->sync_, impl_->group_, std::move(hook));
}

void DistributedDataParallel::log(double loss, int64_t samples) {
  if (impl_->steps_) impl_->steps_->log(loss, samples);
}

void DistributedDataParallel::for_each_virtual_rank(const std::function<void(int rank)>& step) {
  Impl& impl = *impl_;
  if (!impl.virtual_) {
    throw Error(ExitCode::usage, "for_each_virtual_rank: set DistributedDataParallelOptions::virtual_ranks");
  }
  impl.step_ = impl.virtual_->steps() + 1;
  bool& in_virtual_rank = impl.group_.state().in_virtual_rank;
  const auto after = c10::make_scope_exit([&] { in_virtual_rank = false; });
  const auto end = [&] {
    in_virtual_rank = false;
    impl.watch_.require_unchanged();
    impl.end_backward();
  };
  const auto run = [&](int rank) {
    impl.progress(Phase::forward);
    in_virtual_rank = true;
    step(rank);
  };
  impl.virtual_->run(run, end);
  impl.progress(Phase::optimizer);
}

void DistributedDataParallel::join(const std::function<void()>& loop, JoinOptions options) {
  impl_->join(loop, std::move(options));
}

std::shared_ptr<void> DistributedDataParallel::no_sync() {
  train::GradientHooks& hooks = impl_->sync_.hooks();
  return {nullptr, [&hooks, before = hooks.hold(true)](void*) { hooks.hold(before); }};
}

}  // namespace ddprun
