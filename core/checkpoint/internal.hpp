// The names of the files in a checkpoint folder, and the checksums in their metadata. Internal to this module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ddprun::checkpoint {

inline constexpr std::string_view kBestName = "best.safetensors";

// "step-00000469.safetensors"
std::string commit_name(int64_t step);
// "step-00000469.state-rank1.safetensors"
std::string state_name(int64_t step, int rank);

// The step in the name of a commit's or a state's file; -1 for any other name.
int64_t step_of_commit(const std::string& name);
int64_t step_of_state(const std::string& name);

// Whether this is a temporary file (aside_path()) of a process of this host that has ended. A file of this process
// counts too, because the caller is not writing.
bool is_left_over(const std::string& name);
// The same for a temporary file of the file `whole` in the same folder.
bool is_left_over_of(const std::string& whole, const std::string& name);

inline const std::string kHeaderChecksumKey = "ddprun.crc32";
inline const std::string kTensorChecksumPrefix = kHeaderChecksumKey + ".";  // followed by the tensor's name
// placeholder in the header while its checksum is computed
inline constexpr std::string_view kNoChecksum = "00000000";

// CRC-32 as zlib computes it, as eight lower-case hexadecimal digits.
std::string checksum_of(const void* data, size_t bytes);

// Replaces the placeholder in the header by the checksum of the header with the placeholder.
void seal(std::string& header);
// Whether the header has a checksum of itself, and whether it is right.
enum class Seal { none, right, wrong };
Seal check_seal(std::string header);

}  // namespace ddprun::checkpoint
