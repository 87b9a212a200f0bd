// Reads members of a tar archive, plain or gzip, into memory; writes nothing to disk. Private to the module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ddprun::data {

struct ArchiveLimits {
  std::size_t member = 0;  // maximum bytes of a wanted member; a larger one is rejected before it is read
  std::size_t total = 0;   // maximum bytes of the whole archive, unpacked
};

// The members with the given `names`, each name exactly as in the archive; missing ones are left out. Reads the archive
// once to its end, so that its checksum is verified. Throws InvalidDataset("root") that begins with `path`: for a
// damaged archive, one beyond the limits, a duplicate member, and any member, wanted or not, that is a link or a device
// or whose name is absolute or contains "..". Archives of data sets have no such members.
std::map<std::string, std::vector<uint8_t>> read_members(const std::string& path, const std::vector<std::string>& names,
                                                         const ArchiveLimits& limits);

}  // namespace ddprun::data
