// What must be equal on all processes of a job.
#pragma once

#include <chrono>
#include <string>

#include "base/store.hpp"

namespace ddprun::launch {

// Parts of the error: "rank 0 and rank 3 do not run the same experiment: A and B; start all ranks with ...".
struct IdentityWords {
  std::string process = "rank";
  std::string differ;  // "do not run the same experiment"
  std::string advice;  // "start all ranks with the same config and program"
};

// Compares `mine`, one `name = value` per line with "[table]" lines between them, with those of the other processes.
// Collective; call it once per store. Sends only digests, unless there is a difference. Throws Error(rendezvous) with
// the first line that differs, on all processes.
void compare_identities(Store& store, int rank, int size, const std::string& mine, std::chrono::milliseconds timeout,
                        const IdentityWords& words);

}  // namespace ddprun::launch
