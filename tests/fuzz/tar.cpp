// The archives of data sets: tar, plain and compressed.
#include "fuzz/target.hpp"

#include "data/byte_file.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"

using namespace ddprun;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  static const data::ArchiveLimits limits{20'000, 200'000};
  static fuzz::MemoryFile file;
  file.write(data, size);
  try {
    for (const auto& [name, member] : data::read_members(file.path(), {"a", "b"}, limits)) {
      fuzz::require(name == "a" || name == "b", "only wanted members are read");
      fuzz::require(member.size() <= limits.member, "no member is larger than its limit");
    }
  } catch (const InvalidDataset& error) {
    fuzz::require_message(error.what(), file.path() + ": ");
  }
  return 0;
}
