// Runs as sentences and tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/text.hpp"
#include "cli/config/experiment.hpp"
#include "cli/console/table.hpp"
#include "tools/lib/statistics.hpp"
#include "tools/report/runs.hpp"

namespace ddprun::report {
namespace {

using console::human_time;
using record::StepRecord;
using record::Summary;

// "" for what was not measured.
std::string percent(double share) {
  return std::isfinite(share) ? console::percent(share, 2) : "";
}
std::string loss(double value) {
  return std::isfinite(value) ? fmt::format("{:.4f}", value) : "";
}
std::string known(double value, std::string (*text)(double)) {
  return std::isfinite(value) ? text(value) : "";
}
std::string count(int64_t number) {
  return number < 0 ? "" : console::human_count(number);
}
std::string bytes(int64_t number) {
  return number < 0 ? "" : console::human_bytes(number);
}

std::string environment(const NamedRun& run, const std::string& key) {
  const auto& all = run.run.environment;
  return all.contains(key) ? all.at(key) : "";
}

// "2026-11-22 10:15:00"
std::string started(const NamedRun& run) {
  std::string date = environment(run, "date").substr(0, 19);
  std::replace(date.begin(), date.end(), 'T', ' ');
  return date;
}

std::string served(const Summary& summary) {
  std::string text = summary.backend;
  // A backend that does not say more names itself again.
  if (!summary.algorithm.empty() && summary.algorithm != summary.backend) text += " " + summary.algorithm;
  if (!summary.transport.empty() && summary.transport != summary.backend) text += " over " + summary.transport;
  return text;
}

std::string learned(const Summary& summary) {
  const auto text_of = [](const auto& measure) { return fmt::format("{} {:.4f}", measure.first, measure.second); };
  return fmt::format("{}", fmt::join(tools::each(summary.learned, text_of), ", "));
}

std::string device_memory(const Summary& summary) {
  return fmt::format("{}", fmt::join(tools::each(summary.memory_by_device, bytes), ", "));
}

// "2 ranks after step 19 (0.15 s lost)"
std::string changes(const Summary& summary) {
  const auto& [after_step, ranks, seconds] = summary.changes;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min({after_step.size(), ranks.size(), seconds.size()}); ++i) {
    texts.push_back(fmt::format("{} after step {} ({} lost)", console::several(ranks[i], "rank"), after_step[i],
                                human_time(seconds[i])));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

// Names with values; a value is empty if it was not measured.
struct Line {
  const char* name;
  std::function<std::string(const Summary&)> value;
};

const std::vector<Line> kLines = {
    {"model", [](const Summary& s) { return s.model; }},
    {"data", [](const Summary& s) { return s.data; }},
    {"strategy", [](const Summary& s) { return s.strategy; }},
    {"communication", served},
    {"ranks", [](const Summary& s) { return count(s.world); }},
    {"changes of the ranks", changes},
    {"devices", [](const Summary& s) { return count(s.devices); }},
    {"global batch", [](const Summary& s) { return count(s.batch); }},
    {"epochs", [](const Summary& s) { return count(s.epochs); }},
    {"steps", [](const Summary& s) { return count(s.steps); }},
    {"seed", [](const Summary& s) { return s.seed < 0 ? "" : std::to_string(s.seed); }},
    {"stopped", [](const Summary& s) { return s.stopped == "early_stop" ? "early" : s.stopped; }},
    {"test accuracy", [](const Summary& s) { return percent(s.test_accuracy); }},
    {"test loss", [](const Summary& s) { return loss(s.test_loss); }},
    {"validation accuracy", [](const Summary& s) { return percent(s.validation_accuracy); }},
    {"validation loss", [](const Summary& s) { return loss(s.validation_loss); }},
    {"training loss", [](const Summary& s) { return loss(s.train_loss); }},
    {"learned", learned},
    {"best epoch", [](const Summary& s) { return count(s.best_epoch); }},
    {"total time", [](const Summary& s) { return known(s.total_time, human_time); }},
    {"average step", [](const Summary& s) { return known(s.avg_batch_time, human_time); }},
    {"throughput", [](const Summary& s) { return known(s.throughput, console::human_rate); }},
    {"gradients per step", [](const Summary& s) { return bytes(s.comm_bytes); }},
    {"allreduce time per step, hidden or exposed", [](const Summary& s) { return known(s.comm_time, human_time); }},
    {"busbw", [](const Summary& s) { return known(s.comm_busbw, console::human_bandwidth); }},
    {"replicate", [](const Summary& s) { return known(s.split.replicate, human_time); }},
    {"scatter", [](const Summary& s) { return known(s.split.scatter, human_time); }},
    {"gather", [](const Summary& s) { return known(s.split.gather, human_time); }},
    {"reduce", [](const Summary& s) { return known(s.split.reduce, human_time); }},
    {"tensors of each device", device_memory},
    {"peak memory of a rank", [](const Summary& s) { return bytes(s.peak_memory_bytes); }}};

using config::Experiment;
const std::vector<std::pair<const char*, std::string (*)(const Experiment&)>> kSettings = {
    {"optimizer", [](const Experiment& e) { return e.optimizer.name; }},
    {"learning rate",
     [](const Experiment& e) {
       return exact_text(e.optimizer.lr) + (e.optimizer.scale_lr == "world" ? " x ranks" : "");
     }},
    {"mixed precision", [](const Experiment& e) { return e.train.amp; }}};

// A row, unless no run has a value.
void add_row(console::Table& table, const std::string& name, const std::vector<NamedRun>& runs,
             const std::function<std::string(const NamedRun&)>& value) {
  std::vector<std::string> row = {name};
  for (const NamedRun& run : runs) row.push_back(value(run));
  if (std::any_of(row.begin() + 1, row.end(), [](const std::string& cell) { return !cell.empty(); })) table.row(row);
}

// One column per run.
console::Table table_by_run(const std::vector<NamedRun>& runs, console::Align align) {
  std::vector<console::Table::Column> columns = {{""}};
  for (const NamedRun& run : runs) columns.push_back({runs.size() == 1 ? "" : run.name, align});
  return console::Table(columns);
}

// A step without a record of this part spent no time in it.
double mean(const std::vector<StepRecord>& steps, double StepRecord::*member) {
  double sum = 0;
  for (const StepRecord& step : steps) sum += std::isnan(step.*member) ? 0 : step.*member;
  return sum / static_cast<double>(steps.size());
}

}  // namespace

std::string summary_sentence(const NamedRun& run) {
  const Summary& s = run.run.summary;
  std::string text = fmt::format("{}: {} on {}, {}", run.name, s.model, s.data, s.strategy);
  if (!served(s).empty()) text += " over " + served(s);
  if (s.virtual_ranks > 0) text += fmt::format(", {} virtual ranks on", s.virtual_ranks);
  if (s.world > 0) text += (s.virtual_ranks > 0 ? " " : ", ") + console::several(s.world, "rank");
  if (s.devices > 0) text += fmt::format(", {} devices", s.devices);
  std::vector<std::string> results;
  const auto add = [&](const char* what, const std::string& value) {
    if (!value.empty()) results.push_back(what + value);
  };
  add("test accuracy ", percent(s.test_accuracy));
  if (!std::isfinite(s.test_accuracy)) add("test loss ", loss(s.test_loss));
  add("", known(s.throughput, console::human_rate));
  add("total time ", known(s.total_time, human_time));
  if (!results.empty()) text += fmt::format(": {}", fmt::join(results, ", "));
  if (!s.stopped.empty()) text += s.stopped == "early_stop" ? "; stopped early" : "; " + s.stopped;
  if (const std::string state = tools::state_of(run.run); !state.empty()) text += "; " + state;
  return text + ".";
}

TitledTable results_table(const std::vector<NamedRun>& runs) {
  console::Table table = table_by_run(runs, console::Align::right);
  add_row(table, "started", runs, started);
  for (const auto& [name, value] : kSettings) {
    add_row(table, name, runs, [&](const NamedRun& run) { return run.experiment ? value(*run.experiment) : ""; });
  }
  for (const Line& line : kLines) {
    add_row(table, line.name, runs, [&](const NamedRun& run) { return line.value(run.run.summary); });
  }
  return {"", table};
}

std::vector<std::string> differences(const std::vector<NamedRun>& runs) {
  std::vector<std::string> found;
  const auto add = [&](const std::string& name, const auto& value_of) {
    const std::vector<std::string> values = tools::each(runs, value_of);
    if (std::set(values.begin(), values.end()).size() > 1) found.push_back(differing_text(name, values));
  };
  add("start", started);
  add("load of the host at the start", [](const NamedRun& run) { return tools::load_at_start(run.run); });
  for (const char* key : {"host", "cpu_model", "cores", "ddprun", "torch"}) {
    add(key, [&](const NamedRun& run) { return environment(run, key); });
  }
  add("global batch", [](const NamedRun& run) { return count(run.run.summary.batch); });
  std::vector<Experiment> experiments;
  for (const NamedRun& run : runs) {
    if (run.experiment) experiments.push_back(*run.experiment);
  }
  for (const auto& [key, values] : differing_settings(experiments)) found.push_back(differing_text(key, values));
  return found;
}

TitledTable ranks_table(const NamedRun& run) {
  const std::vector<std::pair<const char*, double StepRecord::*>> parts = {{"data wait", &StepRecord::data},
                                                                           {"forward", &StepRecord::forward},
                                                                           {"backward", &StepRecord::backward},
                                                                           {"communication", &StepRecord::comm},
                                                                           {"optimizer", &StepRecord::optimizer}};
  std::vector<std::string> titles = {"rank", "steps", "average", "p95"};
  for (const auto& [name, member] : parts) titles.push_back(name);
  console::Table table = table_with({}, titles);
  for (std::size_t rank = 0; rank < run.run.steps.size(); ++rank) {
    const auto& steps = run.run.steps[rank];
    if (steps.empty()) continue;
    const std::vector<double> times = tools::each(steps, &StepRecord::total);
    std::vector<std::string> cells = {std::to_string(rank), count(static_cast<int64_t>(steps.size())),
                                      human_time(mean(steps, &StepRecord::total)),
                                      human_time(tools::quantile(times, 0.95))};
    for (const auto& [name, member] : parts) cells.push_back(human_time(mean(steps, member)));
    table.row(cells);
  }
  return {"The average step of each rank, " + run.name, table};
}

TitledTable gpus_table(const NamedRun& run) {
  using record::GpuRecord;
  console::Table table = table_with({}, {"rank", "GPU", "tensors, peak", "reserved for them"});
  for (std::size_t rank = 0; rank < run.run.gpus.size(); ++rank) {
    std::map<int64_t, std::vector<GpuRecord>> devices;
    for (const GpuRecord& sample : run.run.gpus[rank]) devices[sample.device].push_back(sample);
    for (const auto& [device, samples] : devices) {
      const auto peak = [&samples](auto member) { return std::ranges::max(samples, {}, member).*member; };
      table.row({std::to_string(rank), std::to_string(device), bytes(peak(&GpuRecord::allocated)),
                 bytes(peak(&GpuRecord::reserved))});
    }
  }
  return {"GPUs, " + run.name, table};
}

TitledTable environment_table(const std::vector<NamedRun>& runs) {
  std::set<std::string> keys;
  for (const NamedRun& run : runs) {
    for (const auto& [key, value] : run.run.environment) keys.insert(key);
  }
  console::Table table = table_by_run(runs, console::Align::left);
  for (const std::string& key : keys) {
    add_row(table, key, runs, [&](const NamedRun& run) { return environment(run, key); });
  }
  return {"", table};
}

}  // namespace ddprun::report
