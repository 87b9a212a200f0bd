#include "cli/run/torch_facts.hpp"

#include "train/loop/model_loader.hpp"

namespace ddprun::run {

std::string torch_version() {
  return train::torch_version();
}

}  // namespace ddprun::run
