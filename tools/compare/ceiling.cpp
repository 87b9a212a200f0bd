#include "tools/compare/ceiling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/console/units.hpp"

namespace ddprun::compare {
namespace {

bool all_in(const std::vector<std::string>& keys, const std::string& table) {
  return !keys.empty() &&
         std::all_of(keys.begin(), keys.end(), [&](const std::string& key) { return key.starts_with(table); });
}

PartOfStep largest_part(const Split& split) {
  const auto parts = parts_of_step({split});
  return *std::max_element(parts.begin(), parts.end(),
                           [&](const PartOfStep& a, const PartOfStep& b) { return split.*a.member < split.*b.member; });
}

const char* name_of(double Split::*member) {
  for (const PartOfStep& part : parts_of_step({})) {
    if (part.member == member) return part.name;
  }
  return "";
}

constexpr double kLeastShown = 0.0005;

// Enough digits to show the difference between 0.4 and 0.
std::string percent(double share) {
  if (share > 0 && share < kLeastShown) return "less than 0.1 %";
  return fmt::format("{:.{}f} %", 100 * share, share < 0.0095 ? 1 : 0);
}

}  // namespace

double Split::*lever_of(const std::vector<std::string>& keys_that_differ) {
  if (all_in(keys_that_differ, "data.")) return &Split::data;
  return all_in(keys_that_differ, "optimizer.") ? &Split::optimizer : &Split::comm;
}

std::string ceiling_of(const Split& split, double Split::*lever) {
  const double total = split.total();
  const PartOfStep largest = largest_part(split);
  const double share = split.*lever / total;
  const std::string name = name_of(lever);
  std::string text = percent(split.*largest.member / total) + " " + largest.name;
  if (split.graph > 0 && lever != &Split::data) return text + "; the parts of a CUDA graph are not timed";
  if (!(share > 0)) return text + ", no " + name;
  const bool is_largest = largest.member == lever;
  if (!is_largest) text += ", " + percent(share) + " " + name;
  const double gain = share / (1 - share);
  if (gain < kLeastShown) return text;
  text += std::string("; without ") + (is_largest ? "it" : "the latter") + ", a step would be ";
  if (gain < 1) return text + percent(gain) + " faster";
  return text + fmt::format("{:.{}f} times as fast", 1 + gain, gain < 9 ? 1 : 0);
}

std::string difference_of(const Split& slower, const Split& faster) {
  constexpr double kLeast = 0.05;
  std::vector<std::pair<double, const char*>> parts;
  double most = 0;
  for (const PartOfStep& part : parts_of_step({slower, faster})) {
    parts.emplace_back(slower.*part.member - faster.*part.member, part.name);
    most = std::max(most, std::abs(parts.back().first));
  }
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [more, name] : parts) {
    if (std::abs(more) < kLeast * most) continue;
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", name, more < 0 ? "-" : "+",
                        console::human_time(std::abs(more)));
  }
  return text;
}

}  // namespace ddprun::compare
