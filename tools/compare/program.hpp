// Variants of a program that is none of ddprun's: it trains with PyTorch, and python/ddprun/recording.py records it.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/compare.hpp"
#include "tools/compare/variant.hpp"
#include "tools/lib/process.hpp"

namespace ddprun::compare {

// One variant for each list of "key=value", which come from `option`; or one for each --command. A key is "backend",
// "env.NAME", or the NAME of {NAME} in an argument. What a run is like is known after it (add_run()). Throws
// Error(usage) for a key without effect, for a program that cannot be found, and for options that are about configs.
std::vector<Variant> variants_of_programs(const Request& request, const std::vector<std::vector<std::string>>& own,
                                          const std::string& option);

// The plan of a run that records into the folder `dir`. Throws Error(failure) if the recording is not installed.
tools::ProcessPlan plan_of_program(const Variant& variant, const std::string& dir);

// Why a program has failed: the error that ended a rank, or else the end of its log. Of one that has ended well: why it
// has left no record; "" if there is one.
std::string why_not_recorded(const std::string& dir, const tools::ChildEnd& end);

}  // namespace ddprun::compare
