#include "elastic/survivor.hpp"

#include <torch/serialize.h>

#include <algorithm>
#include <cstdlib>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "ddprun/error.hpp"
#include "launch/rendezvous.hpp"
#include "record/recorder.hpp"
#include "train/optim/optimizers.hpp"
#include "train/tensor/weights.hpp"

namespace ddprun::elastic {
namespace {

// The launcher notices a death within milliseconds, a host that does not answer within 2.3 s. On a machine that is busy
// with other work it may take longer.
constexpr std::chrono::milliseconds kReported{10000};
constexpr std::chrono::milliseconds kBetweenChecks{20};

// Grows with each step and with each end of an epoch. -1: no state yet.
int64_t progress_of(const checkpoint::File& member) {
  const train::Position at = train::read_position(member);
  return at.step + at.epoch;
}

const std::string kEnded = "training has ended";  // a key of the job
const std::string kOptimizer = "optimizer.", kWorld = "world", kEpoch = "epoch's record";

// Of the seconds of a change among Position::numbers, which are sorted by name: "change.000001 19 2", the first one,
// after step 19, to 2 ranks.
const std::string kChange = "change.", kSinceStep = "seconds since the step";

}  // namespace

bool Survivor::joins() {
  return std::getenv(launch::kReplaces) != nullptr;
}

void Survivor::join(std::chrono::milliseconds limit, Store& launcher) {
  launcher.set(std::getenv(launch::kReplaces), "");
  at_.step = -1;
  has_state_ = true;
  do {
    if (!members_.renew(limit)) throw Error(ExitCode::rendezvous, "the other ranks did not let this one join");
  } while (members_.rank() < 0);
}

void Survivor::begin(const train::Position& at) {
  at_ = at;
  has_state_ = is_running_ = true;
  optimizer_.clear();
  require_same_members();  // a death since the ranks met
}

void Survivor::require_same_members() const {
  if (members_.has_changed({})) throw Error(ExitCode::peer, "the ranks have changed");
}

train::Decision Survivor::after_step(int64_t /*step*/) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_check_ || members_.rank() != 0) return {};  // the others lose a peer then
  next_check_ = now + kBetweenChecks;
  require_same_members();
  return {};
}

train::Decision Survivor::after_epoch(const record::EpochRecord& record, train::LoopState& state) {
  epoch_ = record::line_of(record);
  // After the last epoch, its end is done again, so that the summary has its figures.
  if (!state.ends_after(record.epoch)) at_ = {state.at.step, state.at.epoch + 1, 0, {}, state.at.numbers};
  return {};
}

void Survivor::keep(VirtualRanks& ranks, torch::optim::Optimizer& optimizer,
                    const std::vector<train::NamedTensor>& parameters) {
  if (!is_running_) return;
  ranks.states().roll_back();
  optimizer_ = train::optimizer_state(optimizer, parameters);
}

bool Survivor::goes_on(const Error& error, CommBackend* backend) {
  if (error.code() == ExitCode::peer && backend != nullptr) backend->abort();
  const bool may_follow = error.code() == ExitCode::peer || error.code() == ExitCode::rendezvous;
  return may_follow && has_state_ && members_.renew(kReported);
}

bool Survivor::meet(std::chrono::milliseconds timeout) {
  is_running_ = false;
  while (members_.rank() < 0) members_.renew(kReported);  // the job waits for hosts, and the launcher ends it in time
  checkpoint::Metadata mine{{kEpoch, epoch_}, {kSinceStep, std::to_string(since_step_.total())}};
  train::write_position(at_, mine);
  const std::vector<std::string> texts = members_.meet(nlohmann::json(mine).dump(), timeout);
  since_meeting_ = {};
  met_.clear();
  for (const std::string& text : texts) met_.emplace_back().metadata = nlohmann::json::parse(text);
  first_ = static_cast<std::size_t>(std::ranges::max_element(met_, {}, progress_of) - met_.begin());
  if (progress_of(met_[first_]) >= 0) return true;
  if (job_.get(kEnded, {})) return false;
  throw Error(ExitCode::failure, "all ranks that had the state of the training have died");
}

void Survivor::end() {
  if (!job_.get(kEnded, {})) job_.set(kEnded, "");
}

void Survivor::catch_up(const torch::nn::Module& model, const comm::Group& ranks) {
  const checkpoint::File& first = met_[first_];
  const auto is_behind = [&](const checkpoint::File& member) { return progress_of(member) < progress_of(first); };
  if (std::ranges::none_of(met_, is_behind)) return;
  const torch::NoGradGuard no_grad;
  c10::Dict<std::string, torch::Tensor> tensors;
  const int root = static_cast<int>(first_);
  if (ranks.rank() == root) {
    for (const auto& [name, tensor] : train::state(model)) tensors.insert(name, tensor.detach());
    for (const auto& [name, tensor] : optimizer_) tensors.insert(kOptimizer + name, tensor);
  }
  const std::vector<char> bytes = ranks.from(root, torch::pickle_save(tensors));
  if (!is_behind(met_[static_cast<std::size_t>(ranks.rank())])) return;
  // From here on nothing can fail on another rank's account.
  const auto received = torch::pickle_load(bytes).toGenericDict();
  for (const auto& [name, tensor] : train::state(model)) tensor.detach().copy_(received.at(name).toTensor());
  optimizer_.clear();
  for (const auto& entry : received) {
    const std::string name = entry.key().toStringRef();
    if (name.starts_with(kOptimizer)) optimizer_.push_back({name.substr(kOptimizer.size()), entry.value().toTensor()});
  }
  at_ = train::read_position(first);
  epoch_ = first.metadata.at(kEpoch);
}

train::ResumeFrom Survivor::resume(const std::string& checkpoints) {
  seconds_ = train::number_of<double>(met_[first_], kSinceStep) + since_meeting_.total();
  std::ostringstream name;
  name << kChange << std::setfill('0') << std::setw(6) << changes().ranks.size() + 1 << ' ' << at_.step << ' '
       << members_.size();
  at_.numbers[name.str()] = seconds_;
  train::Position at = at_;
  at.totals = {};
  for (const checkpoint::File& member : met_) {
    const train::Position of_member = train::read_position(member);
    if (of_member.epoch == at.epoch) at.totals += of_member.totals;
  }
  checkpoint::File file;
  file.path = "the state that this rank has kept";
  train::FileTensors tensors;
  tensors.add(optimizer_, kOptimizer);
  for (const checkpoint::TensorView& view : tensors.views()) {
    const auto* const bytes = static_cast<const std::byte*>(view.data);
    file.tensors.push_back({view.name, view.dtype, view.shape, {bytes, bytes + view.bytes}});
  }
  train::write_position(at, file.metadata);
  file.metadata[kWorld] = "0";  // no speeds of ranks to drop
  return {checkpoint::commit_at(checkpoints, at.step), false, {{0, std::move(file)}}};
}

record::Changes Survivor::changes() const {
  record::Changes changes;
  for (const auto& [name, seconds] : at_.numbers) {
    if (!name.starts_with(kChange)) continue;
    std::istringstream text(name.substr(name.find(' ')));
    text >> changes.after_step.emplace_back() >> changes.ranks.emplace_back();
    changes.seconds.push_back(seconds);
  }
  return changes;
}

std::string Survivor::text() const {
  std::ostringstream text;
  text << members_.size() << (members_.size() == 1 ? " rank goes on" : " ranks go on") << " after step " << at_.step
       << ", " << std::setprecision(2) << seconds_ << " s after its end";
  return text.str();
}

}  // namespace ddprun::elastic
