// The file names in a checkpoint folder. Internal to this module.
#pragma once

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

}  // namespace ddprun::checkpoint
