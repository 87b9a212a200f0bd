// What `ddprun tune` has found, as text and as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/tune/model.hpp"
#include "tools/tune/read.hpp"

namespace ddprun::tune {

struct Result {
  std::string name;    // of the run: model and data
  std::string folder;  // with all that was measured
  int64_t hosts = 1, ranks = 1;
  double other_cpu = 0;  // share of this machine's CPU time that other programs used meanwhile; NaN: unknown
  Basis basis;
  Settings own, chosen;
  std::optional<Verified> verified;  // none: there was nothing to compare

  std::vector<Change> changes() const { return tune::changes(own, chosen); }
  // Whether the changed lines are worth writing.
  bool is_better() const { return verified && verified->is_faster(); }
};

// The links, the gradients, and the expected step with the config as it is and with the chosen lines.
std::string about_choice(const Result& result);
// What the comparison says, and the lines.
std::string about_verdict(const Result& result);

// docs/tuning-communication.md describes it. Times in seconds, sizes in bytes.
std::string to_json(const Result& result, const std::vector<std::string>& command);

}  // namespace ddprun::tune
