#include "tools/compare/output.hpp"

#include <nlohmann/json.hpp>

#include "base/log.hpp"
#include "ddprun/error.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::compare {
namespace {

using nlohmann::ordered_json;

ordered_json json_of(const Split& split) {
  if (!split.is_measured()) return {{"other", split.other}};
  ordered_json object = {{"data", split.data}, {"forward", split.forward},     {"backward", split.backward},
                         {"comm", split.comm}, {"optimizer", split.optimizer}, {"other", split.other}};
  for (const PartOfStep& part : kPartsOfDp) {
    if (!std::isnan(split.*part.member)) object[part.name] = split.*part.member;
  }
  return object;
}

ordered_json json_of(const Figures& figures) {
  return {{"total_time", figures.total_time},
          {"step", figures.step},
          {"throughput", figures.throughput},
          {"samples", figures.samples},
          {"split", json_of(figures.split)},
          {"comm.bytes", figures.comm_bytes},
          {"comm.time", figures.comm_time},
          {"comm.busbw", figures.busbw},
          {"peak_memory_bytes", figures.peak_memory},
          {"test.loss", figures.test_loss},
          {"test.accuracy", figures.test_accuracy},
          {"other_cpu", figures.other_cpu},
          {"load", figures.load},
          {"algorithm", figures.algorithm},
          {"transport", figures.transport}};
}

ordered_json json_of(const Ratio& ratio) {
  return {{"value", ratio.value}, {"low", ratio.low}, {"high", ratio.high}, {"p", ratio.p}};
}

ordered_json json_of(const std::optional<Parting>& parting) {
  if (!parting) return {};
  return {{"step", parting->step},
          {"parameter", parting->parameter},
          {"tensor", parting->tensor},
          {"distance", parting->distance}};
}

ordered_json json_of(const VariantParity& parity) {
  return {{"steps", parity.steps},
          {"ranks", parity.ranks},
          {"ranks_part", json_of(parity.ranks_part)},
          {"runs_equal", parity.repeats ? ordered_json(*parity.repeats) : ordered_json()},
          {"runs_part", json_of(parity.runs_part)}};
}

ordered_json json_of(const PairParity& parity) {
  return {{"tensor_steps", parity.tensor_steps},
          {"first_tensor", json_of(parity.first_tensor)},
          {"largest_distance", parity.largest_distance},
          {"loss_steps", parity.loss_steps},
          {"first_other_loss", parity.first_other_loss},
          {"first_loss_distance", parity.first_loss_distance},
          {"largest_loss_distance", parity.largest_loss_distance},
          {"largest_loss_step", parity.largest_loss_step},
          {"first_step_distance", parity.at_first_step()},
          {"first_step_bound", parity.float32 ? ordered_json(kRounding) : ordered_json()}};
}

ordered_json json_of_member(const Member& member) {
  ordered_json object = {{"name", member.variant.name},
                         {"config", member.variant.file},
                         {"overrides", member.variant.overrides},
                         {"command", member.variant.command},
                         {"twin", member.twin},
                         {"median", json_of(member.typical.figures)},
                         {"step_quartiles", {member.typical.step_low, member.typical.step_high}},
                         {"runs", ordered_json::array()},
                         {"parity_runs", member.parity_dirs},
                         {"parity", json_of(member.parity)}};
  for (std::size_t i = 0; i < member.runs.size(); ++i) {
    object["runs"].push_back(json_of(member.runs[i]));
    object["runs"].back()["folder"] = member.dirs[i];
  }
  return object;
}

std::string block(const report::TitledTable& table) {
  return "\n" + table.title + "\n" + table.table.printed(2);
}

}  // namespace

// What is not finite becomes null.
std::string to_json(const Comparison& comparison) {
  const auto json_of_against = [&](const Against& against) -> ordered_json {
    return {{"name", comparison.members[against.member].variant.name},
            {"ratio", json_of(against.ratio)},
            {"adjusted_p", against.adjusted_p},
            {"verdict", text(against.verdict)},
            {"sentence", sentence(comparison, against)},
            {"parity", json_of(against.parity)}};
  };
  const auto json_of_gate = [](const GateResult& result) -> ordered_json {
    return {{"gate", result.gate.text},
            {"ratio", json_of(result.ratio)},
            {"holds", result.held},
            {"disturbed", result.disturbance > 0}};
  };
  ordered_json object = {{"ddprun_compare", 1},
                         {"interleaved", comparison.interleaved},
                         {"measure", measure_of(comparison)},
                         {"warmup_steps", comparison.warmup_steps},
                         {"seed", comparison.seed},
                         {"environment", comparison.environment},
                         {"differing_keys", comparison.differing},
                         {"other_work", comparison.unfair},
                         {"warnings", warnings(comparison)},
                         {"ceiling", comparison.ceiling},
                         {"variants", tools::each(comparison.members, json_of_member)},
                         {"against_first", tools::each(comparison.against, json_of_against)},
                         {"gates", tools::each(comparison.gates, json_of_gate)}};
  return object.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string text(const Comparison& comparison) {
  std::string out;
  for (const std::string& line : warnings(comparison)) out += line + "\n";
  out += block(figures_table(comparison)) + block(split_table(comparison));
  if (!speedups_of(comparison).empty()) out += block(speedup_table(comparison));
  out += "\nDo they learn the same?\n";
  for (const auto& [title, lines] : parity_sentences(comparison)) {
    out += "  " + title + "\n";
    for (const std::string& line : lines) out += "    " + line + "\n";
  }
  out += block(loss_table(comparison)) + block(verdict_table(comparison)) + "\n";
  for (const std::string& line : answers(comparison)) out += line + "\n";
  for (const GateResult& result : comparison.gates) out += text(comparison, result) + "\n";
  return out;
}

bool can_draw() try {
  report::asset("vega.js");
  return true;
} catch (const Error& error) {
  log::warning(std::string("report.html will not be written: ") + error.what());
  return false;
}

}  // namespace ddprun::compare
