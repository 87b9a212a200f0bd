#include "checkpoint/internal.hpp"

#include <unistd.h>

#include "base/file.hpp"
#include "base/text.hpp"
#include "ddprun/plugin/host.hpp"

namespace ddprun::checkpoint {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kState = ".state-rank";
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kAside = ".tmp-";  // of aside_path()

// "step-00000469"
std::string stem_of(int64_t step) {
  const std::string digits = std::to_string(step);
  const size_t zeros = digits.size() < 8 ? 8 - digits.size() : 0;
  return std::string(kPrefix) + std::string(zeros, '0') + digits;
}

// -1 if the text is not a whole number.
int64_t number_of(std::string_view text) {
  return parse_number<int64_t>(text).value_or(-1);
}

// The text between prefix and suffix; "" if they do not match.
std::string_view middle_of(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return {};
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  return name;
}

// False for a zombie: it writes no more, and its parent may never reap it.
bool alive(int64_t process) {
  return !ProcessWatch(static_cast<pid_t>(process)).has_ended();
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

bool is_left_over(const std::string& name) {
  const size_t at = name.rfind(kAside);
  return at != std::string::npos && is_left_over_of(name.substr(0, at), name);
}

bool is_left_over_of(const std::string& whole, const std::string& name) {
  const size_t id = whole.size() + kAside.size();
  if (!name.starts_with(whole + std::string(kAside))) return false;
  const int64_t writer = number_of(std::string_view(name).substr(id, name.find('-', id) - id));
  // Whether a process of another host is alive is not known here.
  if (writer <= 0 || name != aside_path(whole, writer)) return false;
  return writer == ::getpid() || !alive(writer);
}

}  // namespace ddprun::checkpoint
