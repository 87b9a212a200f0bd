#include "environment.hpp"

#include <cstdlib>
#include <mutex>

namespace ddprun::nccl_backend {
namespace {

std::mutex& turns() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

std::optional<std::string> variable(const std::string& name) {
  const std::lock_guard lock(turns());
  const char* const value = std::getenv(name.c_str());
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

void set_variable(const std::string& name, const std::string& value) {
  const std::lock_guard lock(turns());
  const char* const now = std::getenv(name.c_str());
  if (now == nullptr || value != now) setenv(name.c_str(), value.c_str(), 1);
}

void unset_variable(const std::string& name) {
  const std::lock_guard lock(turns());
  unsetenv(name.c_str());
}

}  // namespace ddprun::nccl_backend
