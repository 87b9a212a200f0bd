#include "train/loop/gradient_check.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/log.hpp"
#include "ddprun/error.hpp"

namespace ddprun::train {
namespace {

// A sum is much faster than isfinite(). It is not finite if an element is not, or if it overflows: only then is each
// element examined.
bool is_finite(const torch::Tensor& gradient) {
  return std::isfinite(gradient.sum().item<double>()) || gradient.isfinite().all().item<bool>();
}

}  // namespace

bool GradientCheck::should_skip_step(int64_t step) {
  const torch::NoGradGuard no_grad;
  const auto bad = [](const NamedTensor& parameter) {
    const torch::Tensor& gradient = parameter.tensor.grad();
    return gradient.defined() && !is_finite(gradient);
  };
  const auto first = std::find_if(parameters_.begin(), parameters_.end(), bad);
  if (first == parameters_.end()) return false;
  const bool nan = first->tensor.grad().isnan().any().item<bool>();
  const std::string what = "the gradient of " + first->name + " is " + (nan ? "nan" : "infinite");
  if (then_ == Then::stop) {
    throw Error(ExitCode::failure,
                what + "; a smaller optimizer.lr usually helps; the weights are those before this step");
  }
  log::warning("step " + std::to_string(step) + ": " + what + "; the optimizer leaves out this step");
  return true;
}

}  // namespace ddprun::train
