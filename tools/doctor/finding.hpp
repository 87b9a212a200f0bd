// doctor: examines a host, and the network between hosts. One part collects facts, one judges them (findings), one
// prints. Torch-free. This header: findings.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ddprun::doctor {

enum class State { ok, note, warning, error };

inline const char* name_of(State state) {
  switch (state) {
    case State::ok: return "ok";
    case State::note: return "note";
    case State::warning: return "warning";
    case State::error: break;
  }
  return "error";
}

struct Finding {
  std::string group;  // "limits"
  std::string name;   // "open files"
  State state = State::ok;
  std::string value;   // what was found
  std::string advice;  // what to do; not empty unless the state is ok
};

// Findings of one group.
class Findings {
 public:
  explicit Findings(std::string group) : group_(std::move(group)) {}

  void ok(std::string name, std::string value) { add(State::ok, std::move(name), std::move(value), ""); }
  void add(State state, std::string name, std::string value, std::string advice) {
    list_.push_back({group_, std::move(name), state, std::move(value), std::move(advice)});
  }
  std::vector<Finding> list() && { return std::move(list_); }

 private:
  std::string group_;
  std::vector<Finding> list_;
};

}  // namespace ddprun::doctor
