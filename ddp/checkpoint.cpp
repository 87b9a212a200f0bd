#include "ddprun/checkpoint.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "base/text.hpp"
#include "checkpoint/folder.hpp"
#include "checkpoint/safetensors.hpp"
#include "comm/group.hpp"
#include "ddp/group_state.hpp"
#include "ddp/share.hpp"
#include "ddprun/error.hpp"
#include "ddprun/zero.hpp"
#include "train/loop/position.hpp"
#include "train/optim/optimizers.hpp"
#include "train/tensor/parameters.hpp"
#include "train/tensor/weights.hpp"

namespace ddprun {
namespace {

using torch::optim::Optimizer;

const std::string kOptimizer = "optimizer.", kRate = "optimizer.lr.";

// Calls `work` on rank 0; if it throws, all ranks throw it. The ranks wait for it longer than for a collective.
void on_rank0(const comm::Group& ranks, const std::string& doing, const std::function<void()>& work) {
  std::optional<Error> error;
  comm::with_heartbeat_on_rank0(ranks, doing, [&] { error = ddp::error_of(work); });
  ddp::throw_first(ranks, error);
}
void on_all(const comm::Group& ranks, const std::function<void()>& work) {
  ddp::throw_first(ranks, ddp::error_of(work));
}

// A file that rank 0 reads and sends to the others.
class SharedFile final : public checkpoint::ByteSource {
 public:
  SharedFile(const std::string& path, const comm::Group& ranks) : ranks_(ranks) {
    on_rank0(ranks_, kDoing, [&] {
      file_ = checkpoint::open_file(path);
      size_ = file_->size();
    });
    ranks_.broadcast(&size_, sizeof size_);
  }

  uint64_t size() const override { return size_; }
  void read(void* out, uint64_t bytes) override {
    constexpr uint64_t kPart = 64 << 20;
    for (auto* next = static_cast<std::byte*>(out); bytes > 0;) {
      const uint64_t part = std::min(bytes, kPart);
      on_rank0(ranks_, kDoing, [&] { file_->read(next, part); });
      ranks_.broadcast(next, part);
      next += part;
      bytes -= part;
    }
  }

 private:
  static constexpr const char* kDoing = "reading a checkpoint";
  const comm::Group ranks_;
  std::unique_ptr<checkpoint::ByteSource> file_;  // of rank 0
  uint64_t size_ = 0;
};

// The module's parameters that the optimizer changes. Throws Error(usage) unless all of the optimizer's are the
// module's, and have a name that is not that of an optimizer's state.
std::vector<train::NamedTensor> parameters_of(const Optimizer& optimizer, const torch::nn::Module& module) {
  std::set<const void*> wanted;
  for (const torch::Tensor& tensor : train::parameters_of(optimizer)) wanted.insert(tensor.unsafeGetTensorImpl());
  std::vector<train::NamedTensor> list;
  for (const train::NamedTensor& item : train::state(module)) {
    if (item.name.starts_with(kOptimizer)) {
      throw Error(ExitCode::usage, "a checkpoint with an optimizer cannot hold the module's \"" + item.name +
                                       "\": give the submodule \"optimizer\" another name");
    }
    if (wanted.erase(item.tensor.unsafeGetTensorImpl()) > 0) list.push_back(item);
  }
  if (wanted.empty()) return list;
  throw Error(ExitCode::usage, std::to_string(wanted.size()) +
                                   " parameters of the optimizer are not the module's: save the module that holds all "
                                   "of them");
}

checkpoint::Metadata metadata_of(const CheckpointNumbers& numbers) {
  checkpoint::Metadata metadata{{"format", "pt"}};  // what programs in Python write
  for (const auto& [name, value] : numbers) {
    if (name.starts_with("optimizer") || name.starts_with("ddprun") || name == "format") {
      throw Error(ExitCode::usage, "a number of a checkpoint cannot have the name \"" + name + "\"");
    }
    metadata[name] = exact_text(value);
  }
  return metadata;
}

CheckpointNumbers numbers_in(const checkpoint::Metadata& metadata) {
  CheckpointNumbers numbers;
  for (const auto& [name, text] : metadata) {
    const auto value = parse_number<double>(text);
    if (value && !name.starts_with(kOptimizer)) numbers[name] = *value;
  }
  return numbers;
}

void save(const std::string& path, const torch::nn::Module& module, Optimizer* optimizer, const Group& group,
          const CheckpointNumbers& numbers) {
  const comm::Group& ranks = group.state().idle_ranks();
  checkpoint::Metadata metadata;
  std::vector<train::NamedTensor> tensors = train::state(module), learned;
  on_all(ranks, [&] {
    metadata = metadata_of(numbers);
    if (optimizer != nullptr) learned = parameters_of(*optimizer, module);
  });
  auto* const sharded = dynamic_cast<ShardedOptimizer*>(optimizer);
  if (sharded != nullptr) sharded->consolidate_state_dict(0);
  on_all(ranks, [&] {
    if (optimizer == nullptr) return;
    if (sharded != nullptr && group.rank() == 0) sharded->require_whole_state();
    for (train::NamedTensor& item : train::optimizer_state(*optimizer, learned)) {
      tensors.push_back({kOptimizer + item.name, item.tensor});
    }
    const auto& groups = optimizer->param_groups();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      metadata[kRate + std::to_string(i)] = exact_text(groups[i].options().get_lr());
    }
  });
  on_rank0(ranks, "saving a checkpoint", [&] {
    train::FileTensors contents;
    contents.add(tensors);
    checkpoint::replace_safetensors(path, contents.views(), metadata);
  });
}

std::vector<double> rates_in(const checkpoint::File& file, std::size_t groups) {
  const auto count = std::count_if(file.metadata.begin(), file.metadata.end(),
                                   [](const auto& item) { return item.first.starts_with(kRate); });
  if (count == 0) {
    throw Error(ExitCode::usage, file.path + ": it has no state of an optimizer; load it without one");
  }
  if (static_cast<std::size_t>(count) != groups) {
    throw Error(ExitCode::usage, file.path + ": its optimizer has " + std::to_string(count) +
                                     " groups of parameters, and this one has " + std::to_string(groups));
  }
  std::vector<double> rates;
  for (std::size_t i = 0; i < groups; ++i) rates.push_back(train::number_of<double>(file, kRate + std::to_string(i)));
  return rates;
}

CheckpointNumbers load(const std::string& path, const torch::nn::Module& module, Optimizer* optimizer,
                       const Group& group) {
  const comm::Group& ranks = group.state().idle_ranks();
  SharedFile source(path, ranks);
  checkpoint::File file;
  on_all(ranks, [&] {
    file = checkpoint::read_safetensors(source, path, false);
    train::require_weights(module, file, kOptimizer);
    if (optimizer == nullptr) return;
    const std::vector<double> rates = rates_in(file, optimizer->param_groups().size());
    train::load_optimizer_state(*optimizer, parameters_of(*optimizer, module), file, kOptimizer);
    if (auto* const sharded = dynamic_cast<ShardedOptimizer*>(optimizer)) sharded->drop_state_of_others();
    for (std::size_t i = 0; i < rates.size(); ++i) optimizer->param_groups()[i].options().set_lr(rates[i]);
  });
  train::copy_weights(module, file);
  return numbers_in(file.metadata);
}

}  // namespace

void save_checkpoint(const std::string& path, const torch::nn::Module& module, const Group& group,
                     const CheckpointNumbers& numbers) {
  save(path, module, nullptr, group, numbers);
}

void save_checkpoint(const std::string& path, const torch::nn::Module& module, Optimizer& optimizer, const Group& group,
                     const CheckpointNumbers& numbers) {
  save(path, module, &optimizer, group, numbers);
}

CheckpointNumbers load_checkpoint(const std::string& path, torch::nn::Module& module, const Group& group) {
  return load(path, module, nullptr, group);
}

CheckpointNumbers load_checkpoint(const std::string& path, torch::nn::Module& module, Optimizer& optimizer,
                                  const Group& group) {
  return load(path, module, &optimizer, group);
}

}  // namespace ddprun
