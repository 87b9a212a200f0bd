#include "checkpoint/names.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

namespace ddprun::checkpoint {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kState = ".state-rank";
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kAside = ".tmp-";  // followed by the writer's process id

// "step-00000469"
std::string stem_of(int64_t step) {
  const std::string digits = std::to_string(step);
  const size_t zeros = digits.size() < 8 ? 8 - digits.size() : 0;
  return std::string(kPrefix) + std::string(zeros, '0') + digits;
}

// -1 if the text is not a whole number.
int64_t number_of(std::string_view text) {
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : -1;
}

// The text between prefix and suffix; "" if they do not match.
std::string_view middle_of(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return {};
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  return name;
}

bool alive(int64_t process) {
  return ::kill(static_cast<pid_t>(process), 0) == 0 || errno != ESRCH;
}

}  // namespace

std::string commit_name(int64_t step) {
  return stem_of(step) + std::string(kSuffix);
}

std::string state_name(int64_t step, int rank) {
  return stem_of(step) + std::string(kState) + std::to_string(rank) + std::string(kSuffix);
}

int64_t step_of_commit(const std::string& name) {
  const int64_t step = number_of(middle_of(name));
  return step >= 0 && name == commit_name(step) ? step : -1;
}

int64_t step_of_state(const std::string& name) {
  const std::string_view middle = middle_of(name);
  const size_t at = middle.find(kState);
  if (at == std::string_view::npos) return -1;
  const int64_t step = number_of(middle.substr(0, at)), rank = number_of(middle.substr(at + kState.size()));
  return step >= 0 && rank >= 0 && name == state_name(step, static_cast<int>(rank)) ? step : -1;
}

std::string aside_name(const std::string& name) {
  return name + std::string(kAside) + std::to_string(::getpid());
}

bool is_left_over(const std::string& name) {
  const size_t at = name.rfind(kAside);
  if (at == std::string::npos) return false;
  const std::string whole = name.substr(0, at);
  if (whole != kBestName && !whole.starts_with(kPrefix)) return false;
  const int64_t writer = number_of(std::string_view(name).substr(at + kAside.size()));
  return whole.ends_with(kSuffix) && writer > 0 && (writer == ::getpid() || !alive(writer));
}

}  // namespace ddprun::checkpoint
