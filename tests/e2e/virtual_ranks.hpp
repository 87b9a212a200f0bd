// The experiment of the tests of virtual ranks.
#pragma once

#include <string>

#include "support/paths.hpp"

namespace ddprun::e2e {

// Dropout, BatchNorm, several buckets, and 240 samples in steps of 32: the last step of an epoch is short.
inline const std::string kVirtualRanks = R"(
[launch]
threads = 1
[strategy]
kind = "ddp"
virtual_ranks = 8
bucket_cap_mb = 0.001
[model]
name = ")" + testing::build_dir() +
                                         R"(/tests/fakes/models/libddprun_model_dropnet.so"
[data]
name = "synthetic"
batch_size = 32
options = { shape = "1x8x8", classes = 4, samples = 240, test_samples = 50 }
[optimizer]
lr = 0.05
momentum = 0.9
[train]
epochs = 2
[checkpoint]
every_epochs = 0
)";

}  // namespace ddprun::e2e
