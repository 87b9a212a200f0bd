#include "train/loop/checkpointing.hpp"

#include <filesystem>
#include <map>

#include "base/text.hpp"
#include "comm/group.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/detail/mix.hpp"
#include "train/loop/data_loader.hpp"
#include "train/loop/policies.hpp"
#include "train/loop/step_monitor.hpp"
#include "train/optim/optimizers.hpp"
#include "train/reduce/bucketed_reducer.hpp"
#include "train/tensor/weights.hpp"

namespace ddprun::train {
namespace {

// False if work() could not write and `may_fail`; a warning says so.
bool written(bool may_fail, auto work) {
  try {
    work();
    return true;
  } catch (const Error& error) {
    if (!may_fail || error.code() != ExitCode::failure) throw;
    log::warning(std::string(error.what()) + "; the run continues without this checkpoint");
    return false;
  }
}

}  // namespace

void Checkpoints::resume(LoopState& state) {
  comm::with_heartbeat(state.ranks, "reading the checkpoint", [&] { state.at = checkpointer_.restore(); });
  checkpointer_.restore_together();
}

void Checkpoints::after_step(LoopState& state) {
  const bool often = rule_.every_steps > 0 && rule_.every_steps < rule_.log_every;
  const bool ends_epoch = state.at.step_of_epoch >= state.train.steps();
  commit(state, often && !ends_epoch ? log::Level::debug : log::Level::info);
}

void Checkpoints::after_epoch(LoopState& state) {
  const int64_t epochs = state.at.epoch + 1;
  if ((rule_.every_epochs > 0 && epochs % rule_.every_epochs == 0) || state.ends_after(epochs)) commit(state);
}

void Checkpoints::commit(LoopState& state, log::Level level) {
  if (committed_ == state.at.step) return;
  const std::string doing = "saving a checkpoint";
  state.monitor.phase(Phase::checkpoint);
  committed_ = state.at.step;
  bool failed = false;
  checkpointer_.consolidate();
  comm::with_heartbeat(state.ranks, doing,
                       [&] { failed = !written(rule_.may_fail, [&] { checkpointer_.save_state(state.at); }); });
  // A checkpoint needs the states of all ranks.
  if (rule_.may_fail && state.ranks.sum({failed ? 1.0 : 0.0})[0] > 0) return;
  checkpointer_.gather_states(state.at.step);
  comm::with_heartbeat_on_rank0(state.ranks, doing, [&] {
    written(rule_.may_fail,
            [&] { log::write(level, "checkpoint: " + checkpointer_.save(state.at.step, state.complete_epochs())); });
  });
}

Decision BestWeights::after_epoch(const record::EpochRecord& record, LoopState& state) {
  comm::with_heartbeat_on_rank0(state.ranks, "saving the best weights", [&] {
    const double value = needed_metric(record, metric_, "checkpoint.best");
    const auto best = state.at.numbers.find(kBestValue);
    if (best != state.at.numbers.end() && !is_better(metric_, value, best->second)) return;
    state.monitor.phase(Phase::checkpoint);
    const auto save = [&] {
      log::info("best weights: " + checkpointer_.save_best(state.at.step, record.epoch, value));
    };
    if (!written(may_fail_, save)) return;
    state.at.numbers[kBestValue] = value;
    state.at.numbers[kBestEpoch] = static_cast<double>(record.epoch);
  });
  return {};
}

namespace {

using checkpoint::File;

const std::string kRandom = "random.cpu", kRandomOfGpu = "random.cuda.", kOrder = "reducer.order", kBuffer = "buffer.",
                  kOptimizer = "optimizer.";

class RunCheckpointer final : public Checkpointer {
 public:
  RunCheckpointer(TrainingState state, CheckpointerOptions options) : state_(state), options_(std::move(options)) {}

  Position restore() override {
    if (!options_.resume) return {};
    const torch::NoGradGuard no_grad;
    const std::map<int, File> states = std::move(options_.resume->states);
    // Under ZeRO, the next step drops what other ranks keep.
    load_optimizer_state(state_.optimizer, state_.parameters, states.at(0), kOptimizer);
    if (state_.reducer != nullptr) order_ = order_in(states.at(0));
    Position position = options_.resume->same_world ? restore_parts(states) : restore_at_epoch(states);
    if (state_.rank == 0) take_over_best(position);
    return position;
  }

  // With three or more ranks, a sum depends on the gradient's position in its bucket.
  void restore_together() override {
    if (!order_.empty()) state_.reducer->set_bucket_order(order_);
  }

  void consolidate() override {
    if (state_.consolidate) state_.consolidate();
  }

  // The totals of a rank are in the first of its files.
  void save_state(const Position& position) override {
    Position of_part = position;
    for (int part = 0; part < state_.parts; ++part, of_part.totals = {}) {
      state_.in_part(part, [&] { save_part(state_.rank + part, of_part); });
    }
  }

  void gather_states(int64_t step) override {
    if (!options_.gather) return;
    const checkpoint::Commit commit = checkpoint::commit_at(options_.dir, step);
    options_.gather([&](int rank) { return checkpoint::state_path(commit, rank); });
  }

  std::string save(int64_t step, int64_t epochs) override {
    return save_weights(state_.module, *options_.folder, step, epochs, options_.metadata);
  }

  std::string save_best(int64_t step, int64_t epochs, double value) override {
    FileTensors tensors;
    tensors.add(train::state(state_.module));
    checkpoint::Metadata metadata = options_.metadata;
    metadata["best"] = options_.best;
    metadata[kBestValue] = exact_text(value);
    return options_.folder->save_best(step, epochs, tensors.views(), metadata);
  }

 private:
  void save_part(int rank, const Position& position) const {
    FileTensors tensors;
    for (const auto& [name, generator] : generators()) tensors.add(name, generator.get_state());
    if (rank == 0) {
      tensors.add(optimizer_state(state_.optimizer, state_.parameters), kOptimizer);
      if (state_.reducer != nullptr) tensors.add(kOrder, torch::tensor(state_.reducer->bucket_order(), torch::kInt64));
    } else if (state_.own_buffers) {
      tensors.add(tensors_of(state_.module).buffers(), kBuffer);
    }
    checkpoint::Metadata metadata = options_.state_metadata;
    write_position(position, metadata);
    checkpoint::save_state(options_.dir, position.step, rank, tensors.views(), metadata);
  }

  // The random generators that this rank uses, under their names in a file.
  std::map<std::string, at::Generator> generators() const {
    std::map<std::string, at::Generator> all{{kRandom, at::detail::getDefaultCPUGenerator()}};
    for (const torch::Device gpu : state_.gpus) {
      all.emplace(kRandomOfGpu + std::to_string(all.size() - 1), torch::globalContext().defaultGenerator(gpu));
    }
    return all;
  }

  Position restore_parts(const std::map<int, File>& states) {
    Position position = read_position(states.at(state_.rank));
    for (int part = 0; part < state_.parts; ++part) {
      const int rank = state_.rank + part;
      state_.in_part(part, [&] { restore_part(rank, states.at(rank)); });
      if (part > 0) position.totals += read_position(states.at(rank)).totals;
    }
    return position;
  }

  void restore_part(int rank, const File& file) const {
    for (auto& [name, generator] : generators()) {
      const checkpoint::Tensor* const kept = file.find(name);
      if (kept == nullptr && name != kRandom) continue;  // saved by a run on another device
      generator.set_state(tensor_like(generator.get_state(), file, file.at(name)));
    }
    if (rank != 0 && state_.own_buffers) {
      for (const NamedTensor& buffer : tensors_of(state_.module).buffers()) {
        torch::Tensor(buffer.tensor).copy_(tensor_like(buffer.tensor, file, file.at(kBuffer + buffer.name)));
      }
    }
  }

  // The commit is at the end of an epoch; only rank 0 takes over the totals, for all ranks. The seed is new, because
  // otherwise the random masks of the first epoch would repeat.
  Position restore_at_epoch(const std::map<int, File>& states) {
    Position position = read_position(states.at(0));
    position.totals = {};
    for (const auto& [saver, state] : states) {
      if (state_.rank == 0) position.totals += read_position(state).totals;
    }
    const int64_t saved = number_of<int64_t>(states.at(0), "world");
    for (int saver = 0; saver < saved; ++saver) position.numbers.erase(speed_name(saver));
    for (int part = 0; part < state_.parts; ++part) {
      const auto step = static_cast<uint64_t>(position.step), rank = static_cast<uint64_t>(state_.rank + part);
      state_.in_part(part, [&] { torch::manual_seed(mix(options_.seed ^ mix(step ^ mix(rank)))); });
    }
    return position;
  }

  std::vector<int64_t> order_in(const File& shared) const {
    const checkpoint::Tensor* const found = shared.find(kOrder);
    if (found == nullptr || found->shape == std::vector<int64_t>{0}) return {};  // saved under strategy single
    const auto count = static_cast<int64_t>(state_.parameters.size());
    const torch::Tensor order = tensor_like(torch::empty({count}, torch::kInt64), shared, *found);
    return {order.data_ptr<int64_t>(), order.data_ptr<int64_t>() + count};
  }

  // Resumes the best metric so far. If a later step has replaced the best weights, they are lost. The best file has
  // this value, not the position, which was saved before the evaluation of the commit's own epoch.
  void take_over_best(Position& position) {
    if (options_.best.empty()) return;
    const std::string path =
        checkpoint::best_path(std::filesystem::path(options_.resume->commit.path).parent_path().string());
    if (!std::filesystem::exists(path)) return;
    const File best = checkpoint::read_safetensors(path);
    const auto metric = best.metadata.find("best");
    if (metric == best.metadata.end() || metric->second != options_.best ||
        number_of<int64_t>(best, "step") > position.step) {
      position.numbers.erase(kBestValue);
      position.numbers.erase(kBestEpoch);
      log::warning(path + " is of a later step, or of another metric: the search for the best starts again");
      return;
    }
    position.numbers[kBestValue] = number_of<double>(best, kBestValue);
    position.numbers[kBestEpoch] = static_cast<double>(number_of<int64_t>(best, "epoch"));
    copy_best(best);
  }

  void copy_best(const File& best) {
    std::vector<checkpoint::TensorView> views;
    for (const checkpoint::Tensor& tensor : best.tensors) {
      views.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.data.data(), tensor.data.size()});
    }
    options_.folder->save_best(number_of<int64_t>(best, "step"), number_of<int64_t>(best, "epoch"), views,
                               best.metadata);
  }

  const TrainingState state_;
  CheckpointerOptions options_;
  std::vector<int64_t> order_;  // bucket order of the resumed run; empty if that had none
};

}  // namespace

std::unique_ptr<Checkpointer> run_checkpointer(TrainingState state, CheckpointerOptions options) {
  return std::make_unique<RunCheckpointer>(state, std::move(options));
}

}  // namespace ddprun::train
