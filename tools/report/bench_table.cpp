#include "tools/report/bench_table.hpp"

#include <fmt/format.h>

#include "cli/console/table.hpp"

namespace ddprun::report {
namespace {

// Four significant digits, never an exponent.
std::string cell(double value) {
  if (value < 10) return fmt::format("{:.3f}", value);
  if (value < 100) return fmt::format("{:.2f}", value);
  return value < 1000 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

}  // namespace

std::string bench_table(const std::vector<BenchLine>& lines) {
  constexpr console::Align kRight = console::Align::right;
  console::Table table({{"size", kRight},
                        {"count", kRight},
                        {"type"},
                        {"redop"},
                        {"backend"},
                        {"algorithm"},
                        {"served"},
                        {"buffer"},
                        {"place"},
                        {"median", kRight},
                        {"p95", kRight},
                        {"min", kRight},
                        {"algbw", kRight},
                        {"busbw", kRight},
                        {"wrong", kRight}});
  for (const BenchLine& line : lines) {
    table.row({std::to_string(line.bytes), std::to_string(line.count), line.type, line.op, line.backend, line.algorithm,
               line.served, line.buffer, line.in_place ? "in" : "out", cell(line.median * 1e6), cell(line.p95 * 1e6),
               cell(line.least * 1e6), cell(line.algbw * 1e-9), cell(line.busbw * 1e-9),
               line.wrong ? std::to_string(*line.wrong) : "N/A"});
  }
  return table.printed();
}

}  // namespace ddprun::report
