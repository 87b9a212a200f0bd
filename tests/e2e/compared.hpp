// The runs for tests of comparisons.
#pragma once

#include <string>
#include <vector>

#include "e2e/program.hpp"

namespace ddprun::e2e {

inline const std::string kRing = R"(
[launch]
nproc = 2
threads = 1
[comm]
algorithm = "ring"
[strategy]
kind = "ddp"
[model]
name = "linear"
[data]
name = "linear"
batch_size = 32
workers = 0
options = { samples = 640, test_samples = 64 }
[train]
epochs = 1
)";

// The arguments of a comparison that writes into the test's folder.
inline std::vector<std::string> comparing(const Workplace& place, std::vector<std::string> more) {
  std::vector<std::string> arguments = {"compare", "--output", place.runs().string(), "--warmup-steps", "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace ddprun::e2e
