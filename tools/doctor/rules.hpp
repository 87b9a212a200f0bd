// Judges facts by rules. Pure functions: the same facts give the same findings.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
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

// Findings of one group.
class Findings {
 public:
  explicit Findings(std::string group) : group_(std::move(group)) {}

  // A finding by the first rule that applies; without one the fact is ok.
  void judge(const std::string& name, const std::string& value, const std::vector<Rule>& rules = {});
  // A finding by this rule, and none if it does not apply.
  void judge_only(const std::string& name, const Rule& rule);
  const std::vector<Finding>& list() const { return list_; }

 private:
  std::string group_;
  std::vector<Finding> list_;
};

// All findings, group after group.
std::vector<Finding> judge(const Facts& facts);

std::vector<Finding> judge_plugins(const std::vector<Plugin>& plugins, const std::vector<std::string>& folders);
std::vector<Finding> judge_cores(const Cores& cores);
std::vector<Finding> judge_memory(const Memory& memory);
std::vector<Finding> judge_numa(const std::vector<NumaNode>& nodes);
std::vector<Finding> judge_gpus(const Gpus& gpus);
std::vector<Finding> judge_network(const Network& network);
// `rdma`: the host has an RDMA device.
std::vector<Finding> judge_limits(const Limits& limits, bool rdma);
std::vector<Finding> judge_variables(const Variables& variables, const Network& network, const Cores& cores);
std::vector<Finding> judge_launcher(const Launcher& launcher);

// The interface whose address other hosts should use: that of the default route, else the first one that is up. Null
// if there is none but loopback.
const Interface* main_interface(const std::vector<Interface>& interfaces);

// "a, b" of a list.
std::string joined(const std::vector<std::string>& words);

// The table, then a line that counts what is not ok. Ends in a newline.
std::string table_text(const std::vector<Finding>& findings);

// [{"group": ..., "name": ..., "state": "ok", "value": ..., "advice": ""}, ...]
nlohmann::ordered_json to_json(const std::vector<Finding>& findings);

// Writes the value to a file, or to stdout for "-". Throws Error(failure).
void write_json(const std::string& file, const nlohmann::ordered_json& value);

bool has_error(const std::vector<Finding>& findings);

}  // namespace ddprun::doctor
