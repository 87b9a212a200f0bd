#include <algorithm>
#include <array>
#include <string_view>

#include "cli/config/keys.hpp"

namespace ddprun::config {
namespace {

enum class Which { all, shared };

// Pointers to members need an object that is not const: hence the copy.
std::string written(Experiment experiment, Which which) {
  std::string out, table;
  for (const Key& key : keys()) {
    if (key.table() != table) out += "\n[" + (table = key.table()) + "]\n";
    if (which == Which::shared && key.per_host) continue;
    const std::string value = value_text(key, experiment);
    if (!value.empty()) out += key.name() + " = " + value + "\n";
  }
  return out;
}

struct Rule {
  std::string_view name;  // of a key, or of a table: "data."
  Change change;
};

// The first match counts.
constexpr std::array rules{
    Rule{"experiment.seed", Change::refused},
    Rule{"optimizer.name", Change::refused},
    Rule{"data.batch_weights", Change::reported},
    Rule{"data.balance_steps", Change::reported},
    Rule{"data.root", Change::free},
    Rule{"data.workers", Change::free},
    Rule{"data.prefetch", Change::free},
    Rule{"data.pin_memory", Change::free},
    Rule{"data.batch_size", Change::free},  // the global batch is compared instead
    Rule{"data.batch_per", Change::free},
    Rule{"data.", Change::refused},
    Rule{"model.weights", Change::free},
    Rule{"model.", Change::refused},
    Rule{"launch.threads", Change::reported},
    Rule{"launch.device", Change::reported},
    Rule{"launch.", Change::free},
    Rule{"comm.timeout", Change::free},
    Rule{"comm.check", Change::free},
    Rule{"comm.", Change::reported},
    Rule{"strategy.hash_every", Change::free},
    Rule{"strategy.zero", Change::free},
    Rule{"strategy.", Change::reported},
    Rule{"optimizer.", Change::reported},
    Rule{"train.evaluate", Change::free},
    Rule{"train.", Change::reported},
};

bool fits(const Rule& rule, const std::string& key) {
  return rule.name.ends_with('.') ? key.starts_with(rule.name) : key == rule.name;
}

}  // namespace

std::string to_toml(const Experiment& experiment) {
  return written(experiment, Which::all);
}

std::string shared_toml(const Experiment& experiment) {
  Experiment shared = experiment;
  shared.comm.options = shared_options(shared.comm.options);
  return written(shared, Which::shared);
}

Options shared_options(Options options) {
  for (const std::string& name : find_key("comm.options")->per_host_options) options.erase(name);
  if (const auto tuning = options.find("tuning"); tuning != options.end()) tuning->second = "given";
  return options;
}

std::map<std::string, std::string> key_values(const Experiment& experiment) {
  Experiment copy = experiment;
  make_paths_absolute(copy);  // the config of a run folder names the same files in another way
  std::map<std::string, std::string> values;
  for (const Key& key : keys()) values[key.path] = value_text(key, copy);
  return values;
}

Change change_of(const std::string& key) {
  const auto* const rule = std::find_if(rules.begin(), rules.end(), [&](const Rule& one) { return fits(one, key); });
  return rule == rules.end() ? Change::free : rule->change;
}

}  // namespace ddprun::config
