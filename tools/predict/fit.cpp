#include "tools/predict/fit.hpp"

#include <algorithm>

namespace ddprun::predict {

bool is_determined(const std::vector<Measured>& measured) {
  if (measured.empty()) return false;
  const auto per_message = [](const Measured& one) { return one.path.bytes / one.path.messages; };
  const auto less = [&](const Measured& a, const Measured& b) { return per_message(a) < per_message(b); };
  const auto [least, most] = std::minmax_element(measured.begin(), measured.end(), less);
  constexpr double kFactor = 4;
  return per_message(*most) >= kFactor * per_message(*least);
}

Link fit(const std::vector<Measured>& measured) {
  // The normal equations of sum (a * alpha + b * beta - 1)^2, with a = messages / seconds and b = bytes / seconds.
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  for (const Measured& one : measured) {
    const double a = one.path.messages / one.seconds, b = one.path.bytes / one.seconds;
    aa += a * a, ab += a * b, bb += b * b, a1 += a, b1 += b;
  }
  const double determinant = aa * bb - ab * ab;
  const Link free = {(a1 * bb - b1 * ab) / determinant, (b1 * aa - a1 * ab) / determinant};
  if (free.alpha < 0) return {0, b1 / bb};
  if (free.beta < 0) return {a1 / aa, 0};
  return free;
}

std::vector<double> errors_of(const Link& link, const std::vector<Measured>& measured) {
  std::vector<double> errors;
  for (const Measured& one : measured) errors.push_back(link.seconds(one.path) / one.seconds - 1);
  return errors;
}

}  // namespace ddprun::predict
