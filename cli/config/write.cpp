#include <algorithm>
#include <array>
#include <string_view>

#include "cli/config/keys.hpp"

namespace ddprun::config {
namespace {

enum class Which { all, shared };

void write_keys(const std::string& table, Experiment& experiment, Which which, std::string& out) {
  for (const Key& key : keys()) {
    if (key.table() != table || (which == Which::shared && key.per_host)) continue;
    const std::string value = value_text(key, experiment);
    if (!value.empty()) out += key.name() + " = " + value + "\n";
  }
}

// Pointers to members need an object that is not const: hence the copy.
std::string written(Experiment experiment, Which which) {
  std::string out;
  write_keys("", experiment, which, out);
  for (const Table& table : tables()) {
    out += "\n[" + table.name + "]\n";
    write_keys(table.name, experiment, which, out);
  }
  return out;
}

std::string code(const std::string& text) {
  return "`" + text + "`";
}

std::string default_text(const Key& key) {
  if (!key.example.empty()) return "(required)";
  Experiment defaults;
  const std::string value = value_text(key, defaults);
  const std::string note = key.default_note;
  if (note.empty()) return code(value);
  return value.empty() ? note : code(value) + ": " + note;
}

// "`interface`, `devices` and `debug_file`"
std::string differing_options(const Key& key) {
  const auto& names = key.per_host_options;
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + code(names[i]);
  }
  return text;
}

std::string meaning(const Key& key) {
  std::string text = key.meaning;
  if (key.user != nullptr) text += std::string(" ") + key.user->meaning;
  if (key.per_host) text += " May differ between hosts.";
  if (!key.per_host_options.empty()) text += ' ' + differing_options(key) + " may differ between hosts.";
  return text;
}

constexpr const char* introduction =
    R"(<!-- Made from the table of keys in cli/config/keys.hpp. The test "docs/config.md" renews it: see there. -->
# The configuration

An experiment is one TOML file. Every key has one meaning and one place; a key that is not listed here is an error, and
all errors are reported together, with line, column and the nearest right name:

```
exp.toml:12:13: comm.algorithm = "rign": expected "auto", "ring", "tree", "halving_doubling", "doubling" or "hierarchical" (did you mean "ring"?)
```

`ddprun --config exp.toml --set table.key=value` overrides a key, any number of times; the last one counts. The value is
written as in TOML, and a bare word is a string: `--set train.epochs=3 --set comm.algorithm=tree`. A key that takes a
string also takes a number or a date without quotes: `--set experiment.name=$SLURM_JOB_ID`. Options are set one by one:
`--set model.options.width=64`.

Durations are strings with a unit: `"500ms"`, `"30s"`, `"2m"`, `"1h"`. Sizes in MiB are numbers. Keys that the chosen
strategy or optimizer does not use are allowed, so that one file can be varied, and named in one line of the log. Several
ranks are refused for a strategy that trains in one process: always if the command line asks for them (`-n`,
`--set launch.nproc`), and for a file that gives `launch.nproc` and no `strategy.kind`.
The run folder holds the resolved configuration, with every key written out; running that file again is the same run.

Files and folders that a config names as input are relative to the folder of the config: `data.root`, `data.difficulty`,
`model.weights`, `checkpoint.resume`, `comm.options.tuning`, and a plugin that is named by its path. With `--set`, and in
a config from a pipe (`--config /dev/stdin`), they are relative to the current folder. What a run writes
(`experiment.output`, `launch.log_dir`) is relative to the current folder.

All ranks of a run must have the same configuration. They compare it before the first step. Only keys
that "may differ between hosts" can have another value on each host.

The smallest experiment:

```toml
[model]
name = "linear"
[data]
name = "linear"
```
)";

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

std::string to_markdown() {
  std::string out = introduction;
  const auto rows = [&](const std::string& table) {
    out += "\n| key | value | default | meaning |\n| --- | --- | --- | --- |\n";
    for (const Key& key : keys()) {
      if (key.table() != table) continue;
      out += "| " + code(key.name()) + " | " + expectation(key) + " | " + default_text(key) + " | " + meaning(key) +
             " |\n";
    }
  };
  out += "\n## Before the first table\n";
  rows("");
  for (const Table& table : tables()) {
    out += "\n## [" + table.name + "]\n" + table.meaning + "\n";
    rows(table.name);
  }
  return out;
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
