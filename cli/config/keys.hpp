// The one description of every key of the config. Reading, the check for unknown keys, to_toml() and to_markdown() use
// it.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/config/experiment.hpp"

namespace ddprun::config {

// The Experiment member that a key sets, by type.
using Member = std::variant<bool*, int64_t*, double*, std::string*, std::optional<int64_t>*, std::vector<double>*,
                            std::vector<int64_t>*, Options*>;

// The format of a value, if the member's type does not determine it.
enum class Form {
  plain,
  duration,  // a double in seconds, written as "30s", "500ms" or "2m"
  part,      // a double: a fraction between 0 and 1, written as 0.1, or a count, written as an integer
};

// Which runs use a key.
enum class User {
  all,
  ddp,
  dp,
  gpu,
  sgd,
  adam,
  shuffler,
  curriculum,
  step_schedule,
  cosine_schedule,
  early_stop,
  faults
};

// Both ends are included unless marked open.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;
  bool high_open = false;
  bool holds(double value) const;
};

struct Key {
  // `path` is the member's path in Experiment and so the key's full name: "launch.nproc".
  Key(const std::string& path, Member (*member)(Experiment&));

  // Functions for a chained description.
  Key& doc(const std::string& text);
  Key& between(double low, double high);
  Key& at_least(double low);
  Key& above(double low, double high);          // low itself excluded
  Key& from_to_below(double low, double high);  // high itself excluded
  Key& one_of(std::vector<std::string> allowed = {});
  Key& in_form(Form value);
  Key& or_word(const std::string& word);  // of an integer: "auto" or "all"
  Key& used_by(User value);
  Key& not_empty();                              // a string of at least one character
  Key& must_be_given(const std::string& as_in);  // has no default
  Key& default_means(const std::string& text);
  Key& may_differ();  // between the hosts of a run
  Key& may_differ_in(std::vector<std::string> options);

  // The integer that is stored for count_word.
  int64_t word_value() const { return static_cast<int64_t>(range.low) - 1; }
  std::string full_name() const { return table.empty() ? name : table + "." + name; }

  std::string table;  // "" for a key before the first table
  std::string name;
  Member (*member)(Experiment&);
  std::string meaning;
  Form form = Form::plain;
  std::string count_word;  // allowed instead of an integer; "": none
  Range range;
  std::vector<std::string> words;  // not empty: the only strings allowed
  User user = User::all;
  bool nonempty = false;
  bool required = false;
  std::string example;                        // of a required key
  bool per_host = false;                      // each host of a run has its own value
  std::vector<std::string> per_host_options;  // of a key with options: each host has its own value of these
  std::string default_note;                   // shown in the documentation instead of the default's value
};

// A table of the file.
struct Table {
  std::string name;
  std::string meaning;
};

// In the order of the documentation and of to_toml().
const std::vector<Table>& tables();
const std::vector<Key>& keys();

// The key `name` of a table, or null.
const Key* find_key(const std::string& table, const std::string& name);
// The key by its full name, or null. An option ("comm.options.x") gives the key of its table.
const Key* find_key(const std::string& full_name);
bool is_table(const std::string& name);
bool holds_options(const Key& key);
bool takes_string(const Key& key);

// What the key accepts, for errors and documentation: `an integer from 1 to 1024 or "auto"`.
std::string expectation(const Key& key);

}  // namespace ddprun::config
