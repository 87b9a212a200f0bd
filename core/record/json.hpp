// The records as JSON text. A figure that was not measured has no key: JSON knows no NaN.
#pragma once

#include <string>

#include "ddprun/records.hpp"

namespace ddprun::record {

// One object on one line, without a newline, appended to `out`: no allocation once `out` has grown.
void append_json(std::string& out, const StepRecord& record);
void append_json(std::string& out, const EpochRecord& record);
void append_json(std::string& out, const GpuRecord& record);
// Nested: "gradient", "value" and, where it was measured, "ulp" are objects of their own.
void append_json(std::string& out, const ParityRecord& record);

// One indented object of flat keys ("test.accuracy", "split.comm", "learned.weight") and a newline.
std::string to_json(const Summary& summary);

}  // namespace ddprun::record
