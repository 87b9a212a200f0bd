// IDX, the files of MNIST: plain, and compressed.
#include "fuzz/target.hpp"

#include "data/idx.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"

using namespace ddprun;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  static fuzz::MemoryFile file;
  file.write(data, size);
  for (const int dimensions : {1, 3}) {
    try {
      const data::IdxFile read = data::read_idx(file.path(), dimensions, "values");
      std::size_t values = 1;
      for (const int64_t extent : read.header.extents) values *= static_cast<std::size_t>(extent);
      fuzz::require(read.values().size() == values, "the values are as many as the extents give");
    } catch (const InvalidDataset& error) {
      fuzz::require_message(error.what(), file.path() + ": offset ");
    }
  }
  return 0;
}
