// Judges facts by rules. Pure functions: the same facts give the same findings.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/doctor/facts.hpp"

namespace ddprun::doctor {

enum class State { ok, note, warning, error };

const char* name_of(State state);

struct Finding {
  std::string group;  // "limits"
  std::string name;   // "open files"
  State state = State::ok;
  std::string value;   // what was found
  std::string advice;  // what to do; not empty unless the state is ok
};

struct Rule {
  bool applies = false;
  State state = State::ok;
  std::string advice;
  std::string value = {};  // instead of the fact's, if it is not empty
};

class Findings {
 public:
  // The findings from here on are of this group.
  void begin(std::string group) { group_ = std::move(group); }
  // A finding by the first rule that applies. Without one, the fact is ok; nothing is found if there is no value.
  // Returns the state.
  State judge(const std::string& name, const std::optional<std::string>& value, const std::vector<Rule>& rules = {});
  const std::vector<Finding>& list() const { return list_; }

 private:
  std::string group_;
  std::vector<Finding> list_;
};

// All findings, group after group.
std::vector<Finding> judge(const Facts& facts);

void judge_network(const Facts& facts, Findings& findings);
void judge_variables(const Facts& facts, Findings& findings);

// The interface whose address other hosts should use: that of the default route, else the first one that is up. Null
// if there is none but loopback.
const Interface* main_interface(const std::vector<Interface>& interfaces);

// The table, then a line that counts what is not ok. Ends in a newline.
std::string table_text(const std::vector<Finding>& findings);

// [{"group": ..., "name": ..., "state": "ok", "value": ..., "advice": ""}, ...]
nlohmann::ordered_json to_json(const std::vector<Finding>& findings);

// Writes the value to a file, or to stdout for "-". Throws Error(failure).
void write_json(const std::string& file, const nlohmann::ordered_json& value);

bool has_error(const std::vector<Finding>& findings);

}  // namespace ddprun::doctor
