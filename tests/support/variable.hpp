// Sets an environment variable and restores it in the destructor.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace ddprun::testing {

class Variable {
 public:
  // No value: unset.
  Variable(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    assign(value);
  }
  ~Variable() { assign(old_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void assign(const std::optional<std::string>& value) {
    if (value) {
      setenv(name_, value->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace ddprun::testing
