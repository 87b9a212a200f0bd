#include "config/check.hpp"

#include <algorithm>

#include "config/text.hpp"

namespace ddprun::config {
namespace {

class Check {
 public:
  Check(const Experiment& experiment, const Sources& sources, Faults& faults)
      : e_(experiment), sources_(sources), faults_(faults) {}

  void name_makes_a_folder() {
    constexpr std::size_t longest = 200;  // a file name has 255 bytes, and the time follows
    const std::string& name = e_.experiment.name;
    const bool fits = !name.empty() && name.size() <= longest && name != "." && name != ".." &&
                      name.find('/') == std::string::npos && !has_control(name) && is_utf8(name);
    refuse(!fits, {"experiment.name"}, "names the run folder: give at most 200 bytes of UTF-8, without \"/\"");
  }

  void ddp_shares_the_data() {
    const std::string& sampler = e_.data.sampler;
    refuse(e_.strategy.kind == "ddp" && (sampler == "sequential" || sampler == "random"),
           {"data.sampler", "strategy.kind"},
           "ddp without a distributed sampler is refused; use \"auto\" or \"distributed\"");
  }

  void ranks_divide_the_batch() {
    const std::string fault = batch_fault(e_.data.batch_size, std::max<int64_t>(1, e_.launch.nproc));
    refuse(e_.strategy.kind == "ddp" && e_.data.batch_per == "global" && !fault.empty(),
           {"data.batch_size", "data.batch_per", "launch.nproc", "strategy.kind"}, fault);
  }

  void nesterov_has_momentum() {
    refuse(e_.optimizer.name == "sgd" && e_.optimizer.nesterov && e_.optimizer.momentum == 0,
           {"optimizer.nesterov", "optimizer.momentum", "optimizer.name"},
           "needs momentum; give optimizer.momentum, such as 0.9, or nesterov = false");
  }

  void epochs_or_steps() {
    refuse(e_.train.epochs && e_.train.steps, {"train.steps", "train.epochs"},
           "train.epochs is given too; give one of the two");
  }

 private:
  // The fault is told at the first of the keys that it is about.
  void refuse(bool wrong, const std::vector<std::string>& about, const std::string& what) {
    const bool sound =
        std::all_of(about.begin(), about.end(), [&](const std::string& key) { return faults_.sound(key); });
    if (wrong && sound) faults_.add_key(place_of(sources_, about.front()), about.front(), what);
  }

  const Experiment& e_;
  const Sources& sources_;
  Faults& faults_;
};

}  // namespace

void check_together(const Experiment& experiment, const Sources& sources, Faults& faults) {
  Check check(experiment, sources, faults);
  check.name_makes_a_folder();
  check.ddp_shares_the_data();
  check.ranks_divide_the_batch();
  check.nesterov_has_momentum();
  check.epochs_or_steps();
}

std::string batch_fault(int64_t batch_size, int64_t ranks) {
  if (batch_size % ranks == 0) return "";
  const int64_t below = batch_size / ranks * ranks;
  const std::string sizes = (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + ranks);
  return "is the batch of all ranks, and " + std::to_string(ranks) + " ranks do not divide it; use " + sizes +
         ", or data.batch_per = \"rank\"";
}

}  // namespace ddprun::config
