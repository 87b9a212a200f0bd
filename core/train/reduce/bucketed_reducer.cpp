#include "train/reduce/bucketed_reducer.hpp"

#include <ATen/ScalarOps.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <string_view>

#include "ddprun/error.hpp"
#include "train/tensor/tensor_buffer.hpp"

namespace ddprun::train {
namespace {

std::vector<NamedTensor> at_least_one(std::vector<NamedTensor> parameters) {
  if (parameters.empty()) throw Error(ExitCode::usage, "the model has no parameter that requires a gradient");
  return parameters;
}

torch::Tensor reciprocal(int divisor) {
  return at::native::wrapped_scalar_tensor(1.0 / divisor);
}

}  // namespace

BucketedReducer::BucketedReducer(comm::Group ranks, std::vector<NamedTensor> parameters, ReducerOptions options)
    : ranks_(ranks),
      parameters_(at_least_one(std::move(parameters))),
      options_(std::move(options)),
      comm_thread_(options_.comm_thread != nullptr ? options_.comm_thread : std::make_shared<WorkerThread>()),
      scale_(reciprocal(ranks.size())) {
  hook_.reduce = [this](const Bucket& bucket, std::size_t index) {
    Collective call = in_place(bucket.flat());
    call.bucket = static_cast<int64_t>(index);
    return Reduced{ranks_.backend().allreduce(call).wait(ranks_.timeout()), bucket.flat().nbytes()};
  };
  // Before the first backward the order of gradients is unknown, so there is one bucket for each dtype, as in
  // DistributedDataParallel. This makes the sums equal to its sums, bit for bit.
  std::vector<std::size_t> order(parameters_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  constexpr auto kNoCap = std::numeric_limits<std::size_t>::max();
  build(order, kNoCap, kNoCap);
}

BucketedReducer::~BucketedReducer() {
  // An unfinished step may have started a collective that its peers never join.
  if (started_ > 0) ranks_.backend().abort();
}

void BucketedReducer::add(std::size_t parameter) {
  if (added_.at(parameter) != 0) {
    throw Error(ExitCode::failure, "parameter \"" + parameters_[parameter].name +
                                       "\" got its gradient twice in one step: " + options_.twice_advice);
  }
  added_[parameter] = 1;
  if (!is_average(parameters_[parameter].tensor.grad())) {
    copy_in(parameter);
    const auto [bucket, slot] = slots_[parameter];
    if (options_.gradient_as_bucket_view) buckets_[bucket].make_gradient(slot, parameters_[parameter]);
  }
  mark_ready(parameter);
}

void BucketedReducer::finalize() {
  add_missing();
  finish_buckets();
}

void BucketedReducer::abandon() noexcept {
  try {
    if (started_ > 0) transport_->abandon();
  } catch (...) {  // reported by the next step
  }
  begin_step();
}

void BucketedReducer::finalize_zeros() {
  for (std::size_t parameter = 0; parameter < parameters_.size(); ++parameter) {
    const BucketSlot at = slots_[parameter];
    buckets_[at.bucket].set_zero(at.slot);
    mark_ready(parameter);
  }
  finish_buckets();
}

void BucketedReducer::set_hook(BucketHook hook) {
  hook_ = std::move(hook);
  has_hook_ = true;
  set_divisor(1);
}

void BucketedReducer::set_divisor(int divisor) {
  scale_ = reciprocal(divisor);
}

std::vector<torch::Tensor> BucketedReducer::parameters_of(const Bucket& bucket) const {
  std::vector<torch::Tensor> tensors;
  for (const comm::Slot& slot : bucket.plan().slots) tensors.push_back(parameters_[slot.parameter].tensor);
  return tensors;
}

void BucketedReducer::set_bucket_order(const std::vector<int64_t>& order) {
  std::vector<int64_t> sorted = order, all(parameters_.size());
  std::ranges::sort(sorted);
  std::iota(all.begin(), all.end(), int64_t{0});
  if (sorted != all) {
    throw Error(ExitCode::usage, "the order of the buckets does not list every parameter of the model once");
  }
  order_ = order;
  build(std::vector<std::size_t>(order.begin(), order.end()), options_.first_bucket_bytes, options_.bucket_bytes);
}

TransferTotals BucketedReducer::totals() const {
  TransferTotals totals{0, transport_->seconds()};
  for (const Bucket& bucket : buckets_) totals.bytes += bucket.transfer().bytes;
  return totals;
}

void BucketedReducer::build(const std::vector<std::size_t>& order, std::size_t first_cap, std::size_t cap) {
  std::vector<comm::ParameterInfo> infos;
  for (const NamedTensor& parameter : parameters_) {
    infos.push_back({count_of(parameter.tensor), dtype_of(parameter.tensor), parameter.tensor.is_complex()});
  }
  buckets_.clear();
  slots_.resize(parameters_.size());
  for (const comm::BucketPlan& plan : comm::plan_buckets(infos, order, first_cap, cap)) {
    for (std::size_t slot = 0; slot < plan.slots.size(); ++slot) {
      slots_[plan.slots[slot].parameter] = {buckets_.size(), slot};
    }
    buckets_.emplace_back(ranks_.backend(), plan, parameters_);
  }
  if (transport_ == nullptr) {
    const bool ordered = buckets_[0].device().is_cuda() && ranks_.backend().capabilities().stream_ordered;
    transport_ = ordered ? stream_transport(buckets_, hook_) : thread_transport(buckets_, hook_, *comm_thread_);
  }
  begin_step();
}

void BucketedReducer::begin_step() {
  added_.assign(parameters_.size(), 0);
  ready_order_.clear();
  pending_.clear();
  for (const Bucket& bucket : buckets_) pending_.push_back(bucket.plan().slots.size());
  started_ = 0;
}

// One rank: a copy into the bucket, and back, would change nothing.
bool BucketedReducer::is_average(const torch::Tensor& gradient) const {
  return ranks_.size() == 1 && !has_hook_ && gradient.defined() && gradient.device().is_cpu() &&
         gradient.layout() == torch::kStrided;
}

void BucketedReducer::copy_in(std::size_t parameter) {
  const BucketSlot at = slots_[parameter];
  buckets_[at.bucket].copy_in(at.slot, parameters_[parameter], scale_);
}

void BucketedReducer::mark_ready(std::size_t parameter) {
  ready_order_.push_back(parameter);
  --pending_[slots_[parameter].bucket];
  // Every rank must reduce the buckets in the same order, so a full bucket waits for those before it.
  while (started_ < buckets_.size() && pending_[started_] == 0) transport_->start(started_++);
}

void BucketedReducer::add_missing() {
  std::string missing;
  int count = 0;
  for (std::size_t parameter = 0; parameter < parameters_.size(); ++parameter) {
    if (added_[parameter] != 0) continue;
    if (!allows_missing()) {
      if (++count <= 8) missing += (count > 1 ? ", \"" : "\"") + parameters_[parameter].name + "\"";
      continue;
    }
    copy_in(parameter);
    mark_ready(parameter);
  }
  if (count > 8) missing += " and " + std::to_string(count - 8) + " more";
  if (count > 0) {
    throw Error(ExitCode::failure, "no gradient in this step for " + missing +
                                       ": the loss does not depend on these parameters; let the model use them, or " +
                                       options_.unused_advice);
  }
}

void BucketedReducer::finish_buckets() {
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    if (on_wait_) on_wait_(static_cast<int>(bucket));
    transport_->finish(bucket);
  }
  if (allows_missing()) find_used();
  make_gradients();
  finish_step();
}

void BucketedReducer::find_used() {
  if (!options_.find_unused_parameters && !used_.empty()) return;
  const std::vector<uint8_t> all = ranks_.gather(added_);
  used_.assign(added_.size(), 0);
  for (std::size_t i = 0; i < all.size(); ++i) used_[i % used_.size()] |= all[i];
}

void BucketedReducer::make_gradients() {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> gradients, averages;
  for (std::size_t parameter = 0; parameter < parameters_.size(); ++parameter) {
    const auto [bucket, slot] = slots_[parameter];
    if (!used_.empty() && used_[parameter] == 0) continue;
    if (options_.gradient_as_bucket_view) {
      if (added_[parameter] == 0) buckets_[bucket].make_gradient(slot, parameters_[parameter]);
      continue;
    }
    torch::Tensor& gradient = parameters_[parameter].tensor.mutable_grad();
    if (added_[parameter] != 0 && is_average(gradient)) continue;
    if (!gradient.defined()) gradient = torch::empty_like(parameters_[parameter].tensor);
    gradients.push_back(gradient);
    averages.push_back(buckets_[bucket].views()[slot]);
  }
  if (!gradients.empty()) at::_foreach_copy_(gradients, averages);
}

void BucketedReducer::finish_step() {
  if (!order_.empty()) {
    begin_step();
    return;
  }
  first_execution_ = execution();
  // Once: from now on the buckets use the order that rank 0 observed. The gradients of this step stay valid, because
  // each view keeps its old bucket's memory alive.
  std::vector<int64_t> order(ready_order_.begin(), ready_order_.end());
  ranks_.backend()
      .broadcast({.recv = order.data(), .count = order.size(), .dtype = DType::int64})
      .wait(ranks_.timeout());
  set_bucket_order(order);
}

comm::Execution BucketedReducer::execution() const {
  std::set<std::string_view> algorithms, transports;
  for (const Bucket& bucket : buckets_) {
    if (bucket.execution().algorithm[0] == '\0') return first_execution_;
    algorithms.insert(bucket.execution().algorithm);
    transports.insert(bucket.execution().transport);
  }
  return {c10::Join(", ", algorithms), c10::Join(", ", transports)};
}

}  // namespace ddprun::train
