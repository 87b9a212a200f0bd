#include "cli/run/torch_facts.hpp"

#include "cli/console/program.hpp"
#include "train/device/cuda.hpp"
#include "train/loop/model_loader.hpp"

namespace ddprun::run {

std::string torch_version() {
  return train::torch_version();
}

std::string error_message(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  return of_torch != nullptr ? train::error_message(*of_torch) : console::error_message(error);
}

}  // namespace ddprun::run
