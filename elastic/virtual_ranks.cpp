#include "elastic/virtual_ranks.hpp"

#include <c10/util/ScopeExit.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/sha256.hpp"
#include "ddprun/error.hpp"
#include "train/tensor/tensor_buffer.hpp"
#include "train/tensor/weights.hpp"

namespace ddprun::elastic {
namespace {

// In the order of their names: each name, then the bytes.
std::string sha256_of(std::vector<train::NamedTensor> tensors) {
  std::ranges::sort(tensors, {}, &train::NamedTensor::name);
  train::FileTensors on_host;
  on_host.add(tensors);
  Sha256 hash;
  for (const checkpoint::TensorView& view : on_host.views()) {
    hash.add(view.name.data(), view.name.size());
    hash.add(view.data, view.bytes);
  }
  return hash.hex();
}

std::optional<torch::ScalarType> wire_of(const std::string& compression) {
  if (compression == "none") return std::nullopt;
  return compression == "fp16" ? torch::kFloat16 : torch::kBFloat16;
}

const VirtualRanksOptions& checked(const VirtualRanksOptions& options, int ranks) {
  if (options.count >= ranks && std::has_single_bit(static_cast<unsigned>(options.count))) return options;
  throw Error(ExitCode::usage, "virtual_ranks = " + std::to_string(options.count) +
                                   ": expected a power of two that is at least the number of ranks, " +
                                   std::to_string(ranks));
}

}  // namespace

void require_same_samples(const Dataset& dataset) {
  const std::size_t inputs = dataset.input().bytes(), targets = dataset.target().bytes();
  std::vector<int64_t> indices(static_cast<std::size_t>(std::min<int64_t>(dataset.size(), 4)));
  std::iota(indices.begin(), indices.end(), 0);
  std::vector<char> all_inputs(indices.size() * inputs), all_targets(indices.size() * targets);
  std::vector<char> input(inputs), target(targets);
  dataset.fetch(indices, 0, all_inputs.data(), all_targets.data());
  for (std::size_t index = indices.size(); index-- > 0;) {
    dataset.fetch({&indices[index], 1}, 0, input.data(), target.data());
    const bool is_same = std::memcmp(&all_inputs[index * inputs], input.data(), inputs) == 0 &&
                         std::memcmp(&all_targets[index * targets], target.data(), targets) == 0;
    if (is_same) continue;
    throw Error(ExitCode::usage, "sample " + std::to_string(index) +
                                     " of this data set changes when the samples are fetched in another order, and "
                                     "strategy.virtual_ranks needs samples that depend on seed, epoch and index only");
  }
}

class VirtualRanks::Strategy final : public train::Strategy {
 public:
  Strategy(Model& model, std::unique_ptr<train::Strategy> ddp, VirtualRanks& of)
      : train::Strategy(model),
        ddp_(std::move(ddp)),
        of_(of),
        options_(of.options_),
        is_compared_(options_.is_checked) {}

  void prepare() override {
    ddp_->attach(monitor());
    ddp_->prepare();
    of_.states_.seed(options_.seed);
    if (options_.survives) of_.states_.keep();
  }
  void synchronize_buffers() override {
    if (!options_.survives) ddp_->synchronize_buffers();
  }
  void in_parts(int count, const std::function<void(int part)>& body) override {
    const bool trains = model_.module().is_training();
    if (trains && !is_compared_) is_compared_ = require_same_again([&] { body(0); });
    if (trains && options_.gather_rows != nullptr) return of_.run_in_turns(body, monitor().step);
    for (int part = 0; part < count; ++part) {
      of_.is_last_ = part + 1 == count;
      is_empty_ = false;
      of_.states_.run(
          part, [&] { body(part); }, monitor().step);
      if (trains && !of_.is_last_) of_.reduction_.end_part(part, is_empty_ || options_.find_unused_parameters);
    }
  }
  void begin_micro_batch(bool last) override {
    ddp_->begin_micro_batch(last && !is_trial_ && options_.gather_rows == nullptr);
  }
  // A sum of V gradients of losses divided by V, a power of two: this rounds nothing but subnormal numbers.
  void backward(const torch::Tensor& loss) override { loss.backward(torch::full_like(loss, 1.0 / options_.count)); }
  void skip_backward() override {
    is_empty_ = true;
    if (of_.is_last_ && !is_trial_) ddp_->skip_backward();
  }
  void finish_gradients() override {
    ddp_->finish_gradients();
    of_.reduction_.end_step();
    if (options_.survives) ddp_->synchronize_buffers();
  }
  void after_step(int64_t step) override {
    if (options_.survives) of_.states_.keep();
    ddp_->after_step(step);
  }
  void summarize(const record::RunTotals& totals, int64_t steps, record::Summary& summary) override {
    ddp_->summarize(totals, steps, summary);
    summary.virtual_ranks = options_.count;
    if (of_.reduction_.share().first == 0) summary.weights_sha256 = sha256_of(train::state(model_.module()));
  }

 private:
  // Computes the first part of the first step twice. What a model keeps elsewhere than in buffers, and random numbers
  // that are not Torch's, would not belong to a virtual rank; they change the gradients. Returns whether there were
  // any.
  bool require_same_again(const std::function<void()>& body) {
    const auto parameters = train::trainable_parameters(model_.module());
    std::vector<std::vector<uint64_t>> hashes(2);
    is_trial_ = true;
    for (auto& of_trial : hashes) {
      of_.states_.run_and_undo(body, monitor().step);
      for (const train::NamedTensor& parameter : parameters) {
        torch::Tensor& gradient = parameter.tensor.mutable_grad();
        const bool is_dense = gradient.defined() && gradient.layout() == torch::kStrided;
        of_trial.push_back(is_dense ? train::hash_of(gradient) : 0);
        gradient.reset();
      }
    }
    is_trial_ = false;
    const auto differs = std::ranges::mismatch(hashes[0], hashes[1]).in1 - hashes[0].begin();
    if (static_cast<std::size_t>(differs) == parameters.size()) return std::ranges::any_of(hashes[0], std::identity());
    throw Error(
        ExitCode::usage,
        "strategy.virtual_ranks: the gradient of " + parameters[static_cast<std::size_t>(differs)].name +
            " changed when the same samples were computed twice: the model keeps a state outside its buffers, or "
            "draws random numbers that are not Torch's, or a kernel adds in a varying order (then set "
            "train.deterministic = true)");
  }

  const std::unique_ptr<train::Strategy> ddp_;
  VirtualRanks& of_;
  const VirtualRanksOptions& options_;
  bool is_empty_ = false, is_compared_, is_trial_ = false;
};

VirtualRanks::VirtualRanks(train::ModelTensors model, train::GradientSync& sync, comm::Group ranks,
                           const VirtualRanksOptions& options)
    : options_(checked(options, ranks.size())),
      ranks_(ranks),
      sync_(sync),
      reduction_(sync, ranks, options.count, wire_of(options.compression)),
      states_(std::move(model), reduction_.share(), options),
      lockstep_([this](const torch::Tensor& rows) { return exchange(rows); }) {}

void VirtualRanks::survive(int64_t step) {
  steps_ = step;
  states_.seed_steps();
  states_.keep();
}

void VirtualRanks::run(const std::function<void(int rank)>& step, const std::function<void()>& end) {
  if (sync_.hooks().hold(true)) throw Error(ExitCode::usage, "for_each_virtual_rank: not within no_sync()");
  for (const train::NamedTensor& parameter : sync_.parameters()) parameter.tensor.mutable_grad().reset();
  const Range share = reduction_.share();
  const auto after = c10::make_scope_exit([&] {
    is_last_ = false;
    sync_.hooks().hold(false);
    reduction_.end_step();
  });
  states_.apart([&] {
    const auto body = [&](int part) { step(share.first + part); };
    if (options_.gather_rows != nullptr) return run_in_turns(body, steps_);
    for (int part = 0; part < share.count; ++part) {
      is_last_ = part + 1 == share.count;
      sync_.hooks().hold(!is_last_);
      states_.run(
          part, [&] { body(part); }, steps_);
      if (!is_last_) reduction_.end_part(part, options_.find_unused_parameters);
    }
  });
  if (options_.gather_rows != nullptr) {
    is_last_ = true;
    end();
  }
  if (is_last_) throw Error(ExitCode::failure, "for_each_virtual_rank: the last step has not called backward()");
  sync_.broadcast_buffers();
  ++steps_;
}

void VirtualRanks::run_in_turns(const std::function<void(int part)>& body, int64_t step) {
  const std::vector<train::NamedTensor>& parameters = sync_.parameters();
  const int parts = reduction_.share().count;
  std::vector<std::vector<torch::Tensor>> gradients(static_cast<std::size_t>(parts),
                                                    std::vector<torch::Tensor>(parameters.size()));
  const auto swap_gradients = [&](int part) {
    std::vector<torch::Tensor>& of_part = gradients[static_cast<std::size_t>(part)];
    for (std::size_t i = 0; i < parameters.size(); ++i) std::swap(parameters[i].tensor.mutable_grad(), of_part[i]);
  };
  const auto after = c10::make_scope_exit([this] { *options_.gather_rows = nullptr; });
  *options_.gather_rows = [this](const torch::Tensor& row) { return lockstep_.gather(row); };
  lockstep_.run(
      parts, body,
      [&](int part, bool is_first) {
        states_.enter(part, is_first, step);
        swap_gradients(part);
      },
      [&](int part, bool is_last) {
        states_.leave(part, is_last);
        swap_gradients(part);
      });
  std::vector<bool> is_used;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    is_used.push_back(std::ranges::any_of(gradients, [&](const auto& of_part) { return of_part[i].defined(); }));
  }
  if (std::ranges::none_of(is_used, std::identity())) {
    throw Error(ExitCode::failure, "no virtual rank of this rank has called backward()");
  }
  for (int part = 0; part < parts; ++part) {
    swap_gradients(part);
    if (part + 1 < parts) reduction_.end_part(part, options_.find_unused_parameters);
  }
  sync_.hooks().reset();  // they have held back the gradients of all parts
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    torch::Tensor& gradient = parameters[i].tensor.mutable_grad();
    if (is_used[i] && !gradient.defined() && options_.find_unused_parameters) {
      gradient = torch::zeros_like(parameters[i].tensor);
    }
    if (gradient.defined()) sync_.reducer().add(i);
  }
}

// The ranks have different numbers of virtual ranks: all send as many rows as the one that has most.
torch::Tensor VirtualRanks::exchange(const torch::Tensor& rows) const {
  std::vector<int64_t> shape = rows.sizes().vec();
  shape[0] = share_of(0, ranks_.size(), options_.count).count;
  const torch::Tensor mine = torch::zeros(shape, rows.options());
  mine.narrow(0, 0, rows.size(0)).copy_(rows);
  shape.insert(shape.begin(), ranks_.size());
  const torch::Tensor all = torch::empty(shape, rows.options());
  ranks_.backend().allgather(train::from_to(mine, all)).wait(ranks_.timeout());
  std::vector<torch::Tensor> of_ranks;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    of_ranks.push_back(all[rank].narrow(0, 0, share_of(rank, ranks_.size(), options_.count).count));
  }
  return torch::cat(of_ranks);
}

void VirtualRanks::finalize() {
  if (!is_last_) {
    throw Error(ExitCode::usage,
                "with virtual_ranks, call backward() once for each virtual rank, within for_each_virtual_rank()");
  }
  is_last_ = false;
  sync_.finalize();
  std::vector<torch::Tensor> gradients;
  for (const train::NamedTensor& parameter : sync_.parameters()) {
    if (const torch::Tensor& gradient = parameter.tensor.grad(); gradient.defined()) gradients.push_back(gradient);
  }
  const torch::NoGradGuard no_grad;
  at::_foreach_mul_(gradients, 1.0 / options_.count);  // rounds nothing but subnormal numbers, as in backward()
}

std::unique_ptr<train::Strategy> VirtualRanks::strategy(Model& model, std::unique_ptr<train::Strategy> ddp) {
  return std::make_unique<Strategy>(model, std::move(ddp), *this);
}

}  // namespace ddprun::elastic
