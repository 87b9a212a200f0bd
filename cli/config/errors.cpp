#include "cli/config/errors.hpp"

#include <algorithm>

#include "ddprun/error.hpp"

namespace ddprun::config {

std::string error_text(const Place& place, const std::string& key, const std::string& what) {
  return key + (place.value.empty() ? "" : " = " + place.value) + ": " + what;
}

void Errors::add(const Place& place, const std::string& text) {
  lines_.push_back({place.order, place.where + ": " + text});
}

void Errors::add_key(const Place& place, const std::string& key, const std::string& what) {
  add(place, error_text(place, key, what));
  unsound_.insert(key);
}

void Errors::raise() const {
  if (lines_.empty()) return;
  std::vector<Line> sorted = lines_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Line& a, const Line& b) { return a.order < b.order; });
  std::string message;
  for (const Line& line : sorted) message += (message.empty() ? "" : "\n") + line.text;
  throw Error(ExitCode::usage, message);
}

}  // namespace ddprun::config
