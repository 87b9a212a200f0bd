#include "tools/predict/fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

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
  Link best;
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](const Link& link) {
    if (!(link.alpha >= 0 && link.beta >= 0)) return;
    double sum = 0;
    for (const Measured& one : measured) sum += std::abs(std::log(link.seconds(one.path) / one.seconds));
    if (sum < least) least = sum, best = link;
  };
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const Path a = measured[i].path;
    const double s = measured[i].seconds;
    consider({s / a.messages, 0});
    consider({0, s / a.bytes});
    for (std::size_t j = 0; j < i; ++j) {
      const Path b = measured[j].path;
      const double t = measured[j].seconds, determinant = a.messages * b.bytes - b.messages * a.bytes;
      if (determinant != 0) {
        consider({(s * b.bytes - t * a.bytes) / determinant, (t * a.messages - s * b.messages) / determinant});
      }
    }
  }
  for (const Measured& one : measured) {
    best.misfits.push_back({one.path.bytes / one.path.messages, best.seconds(one.path) / one.seconds - 1});
  }
  return best;
}

}  // namespace ddprun::predict
