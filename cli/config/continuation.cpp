#include "cli/config/continuation.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/config/keys.hpp"
#include "cli/config/paths.hpp"
#include "cli/config/value.hpp"

namespace ddprun::config {
namespace {

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

std::map<std::string, std::string> key_values(const Experiment& experiment) {
  Experiment copy = experiment;
  make_paths_absolute(copy);  // the config of a run folder names the same files in another way
  std::map<std::string, std::string> values;
  for (const Key& key : keys()) values[key.full_name()] = value_text(key, copy);
  return values;
}

Change change_of(const std::string& key) {
  const auto* const rule = std::find_if(rules.begin(), rules.end(), [&](const Rule& one) { return fits(one, key); });
  return rule == rules.end() ? Change::free : rule->change;
}

}  // namespace ddprun::config
