// The prediction as text, JSON and a page.
#pragma once

#include <string>
#include <vector>

#include "tools/predict/forecast.hpp"
#include "tools/report/page.hpp"

namespace ddprun::predict {

// For the terminal: the links, a table for each method, the crossings, Amdahl's limit.
std::string text(const Forecast& forecast);

// docs/predicting.md describes it. Times in seconds, sizes in bytes.
std::string to_json(const Forecast& forecast, const std::vector<std::string>& command);

// Efficiency and time of a step over ranks and time of an allreduce over sizes, with a line for each method, and the
// tables of text().
report::Page page(const Forecast& forecast);

}  // namespace ddprun::predict
