#include "tools/compare/ceiling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

// Enough digits to show the difference between 0.4 and 0.
std::string percent(double share) {
  if (share > 0 && share < 0.0005) return "less than 0.1 %";
  return fmt::format("{:.{}f} %", 100 * share, share < 0.0095 ? 1 : 0);
}

}  // namespace

Lever lever_of(const std::vector<std::string>& keys_that_differ) {
  if (all_in(keys_that_differ, "data.")) return {&Split::data, "faster loading"};
  if (all_in(keys_that_differ, "optimizer.")) return {&Split::optimizer, "a faster optimizer"};
  if (all_in(keys_that_differ, "comm.")) return {&Split::comm, "a faster backend"};
  return {&Split::comm, "less communication"};
}

std::string ceiling_of(const Split& split, const Lever& lever) {
  const double total = split.total();
  const PartOfStep largest = largest_part(split);
  const double share = split.*lever.part / total;
  std::string text = percent(split.*largest.member / total) + " " + largest.name;
  if (split.graph > 0 && lever.part != &Split::data) {
    return text + ": the gain of " + lever.name + " is unknown, because the parts of a CUDA graph are not timed.";
  }
  if (!(share > 0)) return text + ", no " + name_of(lever.part) + ": " + lever.name + " gains nothing.";
  if (largest.member != lever.part) text += ", " + percent(share) + " " + name_of(lever.part);
  const double gain = share / (1 - share);
  text += ": " + lever.name;
  if (gain < 0.0005) return text + " gains " + percent(gain) + ".";
  if (gain < 1) return text + " gains at most " + percent(gain) + ".";
  return text + fmt::format(" makes a step at most {:.{}f} times as fast.", 1 + gain, gain < 9 ? 1 : 0);
}

}  // namespace ddprun::compare
