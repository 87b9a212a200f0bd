// What the files of a checkpoint folder are called. Internal to this module.
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

// The step of a commit's file name, or of a state's; -1 for any other name.
int64_t step_of_commit(const std::string& name);
int64_t step_of_state(const std::string& name);

// The name under which this process writes a file aside.
std::string aside_name(const std::string& name);
// Whether a file was written aside by a process that is gone. What carries our own id is left over too: whoever asks is
// not writing now.
bool is_left_over(const std::string& name);

}  // namespace ddprun::checkpoint
