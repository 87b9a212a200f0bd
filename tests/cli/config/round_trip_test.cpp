#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/config/experiment.hpp"
#include "cli/config/keys.hpp"
#include "written.hpp"

using namespace ddprun;

namespace {

// Text with characters that need escaping; control characters only where a value may have them.
std::string any_text(bool with_control, int least) {
  const auto plain = rc::gen::element<std::string>("a", "Z", "7", " ", "\"", "\\", "'", "#", "=", ".", "\u00e9",
                                                   "\u2028", "\U0001F600", "{", "]", "\\n", "\u0085");
  const auto control = rc::gen::element<std::string>("\n", "\t", "\r", "\x01", "\x1b", "\x7f");
  const auto piece = with_control ? rc::gen::weightedOneOf<std::string>({{4, plain}, {1, control}}) : plain;
  std::string text(static_cast<std::size_t>(least), 'x');
  for (const std::string& part : *rc::gen::container<std::vector<std::string>>(piece)) text += part;
  return text;
}

// A random valid value of the key for its member.
struct AnyValue {
  const config::Key& key;

  void operator()(bool* member) const { *member = *rc::gen::arbitrary<bool>(); }
  void operator()(int64_t* member) const {
    const char *least = key.value.least, *most = key.value.most;
    const int64_t end = most == nullptr ? std::numeric_limits<int64_t>::max() : *parse_integer(most) + 1;
    *member = *rc::gen::inRange(least == nullptr ? 0 : *parse_integer(least), end);
  }
  void operator()(std::optional<int64_t>* member) const {
    int64_t value = 0;
    (*this)(&value);
    *member = value;
  }
  void operator()(double* member) const {
    if (key.value.type == DDPRUN_OPTION_DURATION) {
      *member = static_cast<double>(*rc::gen::inRange<int64_t>(1'000'000, 86'400'000'000'000)) / 1e9;
      return;
    }
    const double low = *parse_real(key.value.least),
                 high = key.value.most == nullptr ? 1e300 : *parse_real(key.value.most);
    const double part = *rc::gen::inRange<int64_t>(1, 1'000'000'007) / 1'000'000'007.0;
    *member = *rc::gen::arbitrary<bool>() ? low + part * (high - low) : std::min(high, low + part * part);
  }
  void operator()(std::string* member) const {
    const bool is_choice = key.value.type == DDPRUN_OPTION_CHOICE;
    *member = is_choice ? *rc::gen::elementOf(parse_list(key.value.choices, '|'))
                        : any_text(false, key.value.type == DDPRUN_OPTION_NAME);
  }
  void operator()(std::vector<double>* member) const {
    for (double& element : *member) (*this)(&element);
  }
  void operator()(std::vector<int64_t>*) const {}
  void operator()(config::Options* member) const {
    const int count = *rc::gen::inRange(0, 4);
    for (int i = 0; i < count; ++i) (*member)[any_text(true, 0)] = any_text(true, 0);
  }
};

// A GPU for each rank or device, or none.
void give_gpus(config::Experiment& e) {
  const int64_t count = e.strategy.kind == "single" ? 1 : e.strategy.kind == "dp" ? e.strategy.devices : e.launch.nproc;
  if (*rc::gen::arbitrary<bool>()) {
    for (int64_t i = 0; i < count; ++i) e.launch.devices.push_back(*rc::gen::inRange(0, 1024));
  }
}

// Any experiment that load() accepts: every key at random, then adjusted so that the keys fit together.
config::Experiment any_experiment() {
  config::Experiment e;
  for (const config::Key& key : config::keys()) std::visit(AnyValue{key}, key.member(e));
  e.experiment.name = "run " + std::to_string(*rc::gen::arbitrary<uint8_t>()) + "\"";
  if (e.strategy.kind == "single") {
    e.launch.nproc = 1;
  } else {
    e.launch.nproc = *rc::gen::inRange<int64_t>(0, 5);
    e.data.batch_size = e.data.batch_size % 1000 * 12 + 12;
    e.data.sampler = *rc::gen::element<std::string>("auto", "distributed");
  }
  e.strategy.virtual_ranks = *rc::gen::element<int64_t>(0, 4);
  if (e.strategy.virtual_ranks > 0) {
    e.data.balance_steps = 0;
    e.comm.stage_through_host = false;
  }
  const int64_t ranks = std::max<int64_t>(e.strategy.virtual_ranks, e.launch.nproc);
  (*rc::gen::arbitrary<bool>() ? e.train.steps : e.train.epochs).reset();
  if (e.data.batch_per == "rank" || e.strategy.kind != "ddp") {
    e.train.accumulate = 1 + e.train.accumulate % e.data.batch_size;
  } else {
    e.train.accumulate = 1 + e.train.accumulate % (e.data.batch_size / std::max<int64_t>(1, ranks));
  }
  if (e.data.validation >= 1) e.data.validation = std::floor(e.data.validation);
  if (!e.train.early_stop.empty()) e.train.evaluate = true;
  e.train.step_epochs = std::max<int64_t>(e.train.step_epochs, 1);
  e.train.min_lr = std::min(e.train.min_lr, e.optimizer.lr);
  if (e.train.steps) e.train.warmup %= *e.train.steps;
  if (e.optimizer.momentum == 0) e.optimizer.nesterov = false;
  if (!e.train.evaluate) e.checkpoint.best.clear();
  for (std::string* metric : {&e.train.early_stop, &e.checkpoint.best}) {
    if (metric->starts_with("validation.") && e.data.validation == 0) metric->clear();
    if (*metric == "train.loss" && e.strategy.virtual_ranks > 0) metric->clear();
  }
  give_gpus(e);
  if (e.train.deterministic) e.train.cudnn_benchmark = false;
  const std::string& fault = e.faults.kind;
  const bool in_collective = fault == "drop" || fault == "shape";
  if (in_collective && e.strategy.kind != "ddp") e.faults.kind = "none";
  e.faults.rank %= e.strategy.kind == "ddp" ? std::max<int64_t>(1, e.launch.nproc) : 1;
  if (e.data.last == "exact" || e.data.balance_steps > 0 || e.strategy.virtual_ranks > 0) {
    e.model.sync_batch_norm = false;
  }
  return e;
}

}  // namespace

TEST_CASE("what is a host's own is not compared between the ranks, and all else is") {
  const std::string shared = config::shared_toml({});
  const auto is_compared = [&](auto change) {
    config::Experiment changed;
    change(changed);
    return config::shared_toml(changed) != shared;
  };
  CHECK_FALSE(is_compared([](auto& e) { e.experiment.output = "/scratch/runs"; }));
  CHECK_FALSE(is_compared([](auto& e) { e.launch.nproc = 8; }));
  CHECK_FALSE(is_compared([](auto& e) { e.launch.threads = 3; }));
  CHECK_FALSE(is_compared([](auto& e) { e.launch.devices = {1, 0}; }));
  CHECK_FALSE(is_compared([](auto& e) { e.launch.log_dir = "logs"; }));
  CHECK_FALSE(is_compared([](auto& e) { e.data.root = "/scratch/mnist"; }));
  CHECK_FALSE(is_compared([](auto& e) { e.comm.options["interface"] = "eth0"; }));
  CHECK_FALSE(is_compared([](auto& e) { e.comm.options["devices"] = "eth0"; }));
  CHECK(is_compared([](auto& e) { e.comm.options["tls"] = "tcp"; }));
  CHECK(is_compared([](auto& e) { e.model.options["interface"] = "eth0"; }));
  CHECK(is_compared([](auto& e) { e.launch.device = "cuda"; }));
  CHECK(is_compared([](auto& e) { e.data.name = "mnist"; }));
  CHECK(is_compared([](auto& e) { e.optimizer.lr = 0.5; }));
}

TEST_CASE("an experiment that is written and loaded again is the same") {
  CHECK(rc::check([] {
    config::Experiment written = any_experiment();
    config::make_paths_absolute(written);
    const std::string text = config::to_toml(written);
    RC_LOG() << text;
    RC_ASSERT(testing::errors_of(text) == "");
    RC_ASSERT(config::to_toml(testing::load_text(text).experiment) == text);
  }));
}

TEST_CASE("a zero with a sign is written as it is read again") {
  const std::string text =
      config::to_toml(testing::load_text(testing::required, {"optimizer.weight_decay=-0.0"}).experiment);
  CHECK(config::to_toml(testing::load_text(text).experiment) == text);
}

TEST_CASE("a fraction and a number of validation samples are written as they are read again") {
  for (const std::string value : {"0", "0.1", "1e-9", "1", "100000", "1099511627776"}) {
    const config::Experiment loaded = testing::load_text(testing::required, {"data.validation=" + value}).experiment;
    CHECK(loaded.data.validation == std::stod(value));
    CHECK(config::to_toml(testing::load_text(config::to_toml(loaded)).experiment) == config::to_toml(loaded));
  }
}

TEST_CASE("a written experiment has every key, and of epochs and steps only the one that is set") {
  const config::Loaded loaded = testing::load_text(
      config::to_toml(testing::load_text("train.steps = 9" + testing::required, {"comm.options.a=1"}).experiment));
  for (const config::Key& key : config::keys()) {
    if (key.holds_options()) continue;
    CHECK_MESSAGE(loaded.sources.given(key.path) == (key.path != "train.epochs"), key.path);
  }
  CHECK(loaded.experiment.comm.options == config::Options{{"a", "1"}});
}
