// The full text for the console.
#include "tools/compare/speedup.hpp"
#include "tools/compare/tables.hpp"

namespace ddprun::compare {
namespace {

std::string block(const report::TitledTable& table) {
  return "\n" + table.title + "\n" + table.table.printed(2);
}

}  // namespace

std::string text(const Comparison& comparison) {
  std::string out;
  for (const std::string& line : warnings(comparison)) out += line + "\n";
  out += block(figures_table(comparison)) + block(split_table(comparison));
  for (const report::TitledTable& table : speedup_tables(comparison)) out += block(table);
  out += "\nDo they learn the same?\n";
  for (const auto& [title, lines] : parity_sentences(comparison)) {
    out += "  " + title + "\n";
    for (const std::string& line : lines) out += "    " + line + "\n";
  }
  out += block(loss_table(comparison)) + block(verdict_table(comparison)) + "\n";
  for (const std::string& line : answers(comparison)) out += line + "\n";
  for (const GateResult& result : comparison.gates) out += text(result) + "\n";
  return out;
}

}  // namespace ddprun::compare
