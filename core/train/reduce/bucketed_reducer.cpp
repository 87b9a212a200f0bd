#include "train/reduce/bucketed_reducer.hpp"

#include <ATen/ScalarOps.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <string_view>

#include "ddprun/error.hpp"
#include "train/reduce/tensor_buffer.hpp"

namespace ddprun::train {
namespace {

std::string with_commas(const std::set<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

std::vector<NamedTensor> at_least_one(std::vector<NamedTensor> parameters) {
  if (parameters.empty()) throw Error(ExitCode::usage, "the model has no parameter that requires a gradient");
  return parameters;
}

std::unique_ptr<BucketTransport> make_transport(CommBackend& backend, std::vector<Bucket>& buckets,
                                                std::chrono::milliseconds timeout) {
  const bool ordered = buckets.at(0).device().is_cuda() && backend.capabilities().stream_ordered;
  return (ordered ? stream_transport : thread_transport)(backend, buckets, timeout);
}

}  // namespace

BucketedReducer::BucketedReducer(CommBackend& backend, std::vector<NamedTensor> parameters, ReducerOptions options)
    : backend_(backend),
      parameters_(at_least_one(std::move(parameters))),
      options_(std::move(options)),
      scale_(at::native::wrapped_scalar_tensor(1.0 / backend.size())) {
  // Before the first backward the order of gradients is unknown, so there is one bucket, as in DistributedDataParallel.
  // This makes the sums equal to DistributedDataParallel's, bit for bit.
  std::vector<std::size_t> order(parameters_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  constexpr auto kNoCap = std::numeric_limits<std::size_t>::max();
  build(order, kNoCap, kNoCap);
}

BucketedReducer::~BucketedReducer() {
  // An unfinished step may have started a collective that its peers never join.
  if (started_ > 0) backend_.abort();
}

void BucketedReducer::add(std::size_t parameter) {
  if (added_.at(parameter)) {
    throw Error(ExitCode::failure, "parameter \"" + parameters_[parameter].name +
                                       "\" got its gradient twice in one step: run one backward per step");
  }
  const Place place = places_[parameter];
  buckets_[place.bucket].copy_in(place.slot, parameters_[parameter].tensor, scale_);
  mark_added(parameter);
}

void BucketedReducer::finalize() {
  add_missing();
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    if (on_wait_) on_wait_(static_cast<int>(bucket));
    transport_->finish(bucket);
  }
  finish_step();
}

void BucketedReducer::set_bucket_order(const std::vector<int64_t>& order) {
  std::vector<bool> listed(parameters_.size(), false);
  for (const int64_t index : order) {
    const auto parameter = static_cast<std::size_t>(index);
    if (parameter < listed.size()) listed[parameter] = true;
  }
  if (order.size() != listed.size() || std::find(listed.begin(), listed.end(), false) != listed.end()) {
    throw Error(ExitCode::usage, "the order of the buckets does not list every parameter of the model once");
  }
  order_ = order;
  build(std::vector<std::size_t>(order.begin(), order.end()), options_.first_bucket_bytes, options_.bucket_bytes);
}

TransferTotals BucketedReducer::totals() const {
  TransferTotals totals{0, transport_->seconds()};
  for (const Bucket& bucket : buckets_) totals.bytes += bucket.bytes();
  return totals;
}

void BucketedReducer::build(const std::vector<std::size_t>& order, std::size_t first_cap, std::size_t cap) {
  std::vector<ParameterInfo> infos;
  for (const NamedTensor& parameter : parameters_) {
    infos.push_back({static_cast<std::size_t>(parameter.tensor.numel()), dtype_of(parameter.tensor)});
  }
  buckets_.clear();
  places_.resize(parameters_.size());
  for (const BucketPlan& plan : plan_buckets(infos, order, first_cap, cap)) {
    for (std::size_t slot = 0; slot < plan.slots.size(); ++slot) {
      places_[plan.slots[slot].parameter] = {buckets_.size(), slot};
    }
    buckets_.emplace_back(backend_, plan, parameters_);
  }
  if (transport_ == nullptr) transport_ = make_transport(backend_, buckets_, options_.timeout);
  begin_step();
}

void BucketedReducer::begin_step() {
  added_.assign(parameters_.size(), false);
  ready_order_.clear();
  pending_.clear();
  for (const Bucket& bucket : buckets_) pending_.push_back(bucket.plan().slots.size());
  started_ = 0;
}

void BucketedReducer::mark_added(std::size_t parameter) {
  added_[parameter] = true;
  ready_order_.push_back(parameter);
  --pending_[places_[parameter].bucket];
  // Every rank must reduce the buckets in the same order, so a full bucket waits for those before it.
  while (started_ < buckets_.size() && pending_[started_] == 0) transport_->start(started_++);
}

void BucketedReducer::add_missing() {
  std::string missing;
  for (std::size_t parameter = 0; parameter < parameters_.size(); ++parameter) {
    if (added_[parameter]) continue;
    if (options_.unused == Unused::error) {
      missing += (missing.empty() ? "\"" : ", \"") + parameters_[parameter].name + "\"";
      continue;
    }
    const Place place = places_[parameter];
    buckets_[place.bucket].set_zero(place.slot, parameters_[parameter].tensor);
    mark_added(parameter);
  }
  if (!missing.empty()) {
    throw Error(ExitCode::failure, "no gradient in this step for " + missing +
                                       ": the loss does not depend on them; let the model use them, or set "
                                       "strategy.unused = \"zero\"");
  }
}

void BucketedReducer::finish_step() {
  if (!order_.empty()) {
    begin_step();
    return;
  }
  first_execution_ = execution();
  // Once: from now on the buckets use the order that rank 0 observed. The gradients of this step stay valid, because
  // each is a view that keeps its old bucket's memory alive.
  std::vector<int64_t> order(ready_order_.begin(), ready_order_.end());
  backend_.broadcast({.recv = order.data(), .count = order.size(), .dtype = DType::int64}).wait(options_.timeout);
  set_bucket_order(order);
}

comm::Execution BucketedReducer::execution() const {
  std::set<std::string_view> algorithms, transports;
  for (const Bucket& bucket : buckets_) {
    if (bucket.execution().algorithm[0] == '\0') return first_execution_;
    algorithms.insert(bucket.execution().algorithm);
    transports.insert(bucket.execution().transport);
  }
  return {with_commas(algorithms), with_commas(transports)};
}

}  // namespace ddprun::train
