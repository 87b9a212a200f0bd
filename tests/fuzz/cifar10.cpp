// The record files of CIFAR-10: plain, and compressed.
#include "fuzz/target.hpp"

#include <vector>

#include "data/builtin.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"

using namespace ddprun;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  static fuzz::MemoryFile file;
  file.write(data, size);
  DatasetContext context;
  context.root = "/proc/self/fd";
  context.options = {{"train", file.name()}, {"test", file.name()}};
  try {
    const Splits splits = data::open_cifar10(context);
    const Dataset& train = *splits.train;
    fuzz::require(train.size() >= 1 && splits.test->size() == train.size(), "each record is a sample");
    std::vector<float> inputs(train.input().elements());
    int64_t target = -1;
    const int64_t last = train.size() - 1;
    train.fetch({&last, 1}, 0, inputs.data(), &target);
    fuzz::require(target >= 0 && target < 10, "a label is a class");
  } catch (const InvalidDataset& error) {
    fuzz::require_message(error.what(), file.path() + ": offset ");
  }
  return 0;
}
