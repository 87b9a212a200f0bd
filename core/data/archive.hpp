// Named members of a tar archive, plain or gzip, read into memory; nothing is ever written to disk. Private to the
// room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ddprun::data {

struct ArchiveLimits {
  std::size_t member = 0;  // bytes of a wanted member; a larger one is refused before it is read
  std::size_t total = 0;   // bytes of the whole archive, unpacked; no more than these are ever unpacked
};

// The members that are called `names`, each name exactly as in the archive; one that is not there is left out. One pass
// over the archive, to its end, so that its checksum is compared. Throws InvalidDataset("root") that begins with `path`:
// for a damaged archive, for one beyond the limits, for a member that is there twice, and for any member, wanted or
// not, that is a link or a device, or whose name is absolute or holds "..": no archive of a data set has those.
std::map<std::string, std::vector<uint8_t>> read_members(const std::string& path, const std::vector<std::string>& names,
                                                         const ArchiveLimits& limits);

}  // namespace ddprun::data
