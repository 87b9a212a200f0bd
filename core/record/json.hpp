// The records as JSON text. A value that was not measured has no key, because JSON has no NaN.
#pragma once

#include <string>

#include "ddprun/records.hpp"

namespace ddprun::record {

// Appends one object on one line, without a newline, to `out`. Allocates nothing once `out` is large enough.
void append_json(std::string& out, const StepRecord& record);
void append_json(std::string& out, const EpochRecord& record);
void append_json(std::string& out, const GpuRecord& record);
// Nested: "gradient", "value" and, if it was measured, "ulp" are objects.
void append_json(std::string& out, const ParityRecord& record);

// One indented object with flat keys ("test.accuracy", "split.comm", "learned.weight") and a newline.
std::string to_json(const Summary& summary);

}  // namespace ddprun::record
