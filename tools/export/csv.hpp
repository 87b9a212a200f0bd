// Records as CSV (RFC 4180): a header, one line per record, lines end with CR LF; a figure that was not measured is an
// empty field.
#pragma once

#include <string>

#include "tools/lib/run.hpp"

namespace ddprun::exporter {

// Every step of every rank, by rank: "rank", then the keys of steps-rank<N>.jsonl.
std::string steps_csv(const record::Run& run);
// The keys of epochs.jsonl, except the losses by rank.
std::string epochs_csv(const record::Run& run);

}  // namespace ddprun::exporter
