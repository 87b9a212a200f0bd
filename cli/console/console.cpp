#include "cli/console/console.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/console/table.hpp"

namespace ddprun::console {
namespace {

bool known(double value) {
  return !std::isnan(value);
}

// "12.0 ms (13.0 ms)"
std::string times(const Meter& meter) {
  return human_time(meter.recent.value()) + " (" + human_time(meter.all.value()) + ")";
}

// The average step by parts; time that belongs to no part has a row of its own.
void add_split(Table& table, const record::Summary& summary) {
  if (!known(summary.avg_batch_time)) return;
  const double step = summary.avg_batch_time;
  table.row({"average step", human_time(step), "100.0 %"});
  // Adds a row, and returns its part of the step.
  const auto row = [&](const char* name, double value) {
    if (!known(value)) return 0.0;
    table.row({name, human_time(value), step > 0 ? percent(value / step, 1) : ""});
    return value;
  };
  double rest = step;
  rest -= row("  data wait", summary.avg_data_time);
  rest -= row("  forward", summary.split.forward);
  rest -= row("  backward", summary.split.backward);
  rest -= row("  exposed communication", summary.split.comm);
  row("    replicate", summary.split.replicate);  // this and the next three are parts of the row before
  row("    scatter", summary.split.scatter);
  row("    gather", summary.split.gather);
  row("    reduce", summary.split.reduce);
  rest -= row("  optimizer", summary.split.optimizer);
  row("  other", std::max(rest, 0.0));
}

std::string communication_of(const record::Summary& summary) {
  std::string text = summary.backend;
  // A backend that does not say more names itself again.
  if (!summary.algorithm.empty() && summary.algorithm != summary.backend) text += " " + summary.algorithm;
  if (!summary.transport.empty() && summary.transport != summary.backend) text += " (" + summary.transport + ")";
  return text;
}

}  // namespace

std::string step_line(const StepLine& line) {
  std::string text = fmt::format("epoch {} [{}/{}] {}time {} data {} loss {} ({})", line.epoch, line.step, line.steps,
                                 line.of_rank0 ? "rank 0: " : "", times(line.time), times(line.data),
                                 human_number(line.loss.recent.value()), human_number(line.loss.all.value()));
  if (line.accuracy.all.count > 0) {
    text += fmt::format(" acc {:.2f} ({:.2f})", 100 * line.accuracy.recent.value(), 100 * line.accuracy.all.value());
  }
  if (line.since > 1) text += fmt::format("; averages since step {}", line.since);
  return text;
}

std::string epoch_line(const record::EpochRecord& epoch) {
  std::string text = fmt::format("epoch {} done", epoch.epoch);
  if (known(epoch.seconds)) text += " in " + human_time(epoch.seconds);
  text += ":";
  const auto results = [&](const char* name, double mean_loss, double accuracy, const char* before) {
    if (!known(mean_loss)) return;
    text += fmt::format("{} {} loss {}", before, name, human_number(mean_loss));
    if (known(accuracy)) text += fmt::format(", acc {:.2f}", 100 * accuracy);
  };
  results("train", epoch.train_loss, epoch.train_accuracy, "");
  results("validation", epoch.validation_loss, epoch.validation_accuracy, ";");
  results("test", epoch.test_loss, epoch.test_accuracy, ";");
  if (!epoch.per_rank_loss.empty()) {
    text += "; train loss by rank";
    for (const double value : epoch.per_rank_loss) text += fmt::format(" {}", human_number(value));
  }
  return text;
}

std::string summary_table(const record::Summary& summary) {
  Table table({{"", Align::left}, {"", Align::right}, {"", Align::right}});
  if (known(summary.test_accuracy)) table.row({"test accuracy", percent(summary.test_accuracy, 2)});
  if (known(summary.test_loss)) table.row({"test loss", human_number(summary.test_loss)});
  if (known(summary.validation_accuracy)) table.row({"validation accuracy", percent(summary.validation_accuracy, 2)});
  if (known(summary.validation_loss)) table.row({"validation loss", human_number(summary.validation_loss)});
  if (known(summary.train_loss)) table.row({"train loss", human_number(summary.train_loss)});
  if (known(summary.total_time)) table.row({"total time", human_time(summary.total_time)});
  if (known(summary.throughput)) table.row({"throughput", human_rate(summary.throughput)});
  if (known(summary.avg_compute_time)) table.row({"average compute", human_time(summary.avg_compute_time)});
  add_split(table, summary);
  if (summary.steps >= 0) table.row({"steps", human_count(summary.steps)});
  if (summary.stopped == "early_stop") table.row({"early stop after epoch", human_count(summary.epochs)});
  if (summary.world >= 0) table.row({"world size", std::to_string(summary.world)});
  if (summary.virtual_ranks >= 0) table.row({"virtual ranks", std::to_string(summary.virtual_ranks)});
  if (!summary.backend.empty()) table.row({"communication", communication_of(summary)});
  if (known(summary.comm_busbw)) {
    table.row({"  allreduced", human_bytes(summary.comm_bytes) + " per step",
               human_bandwidth(summary.comm_busbw) + " busbw"});
  }
  if (summary.peak_memory_bytes >= 0) table.row({"peak memory", human_bytes(summary.peak_memory_bytes)});
  for (std::size_t device = 0; device < summary.memory_by_device.size(); ++device) {
    table.row({fmt::format("  tensors of device {}", device), human_bytes(summary.memory_by_device[device])});
  }
  return table.text();
}

std::string learned_line(const std::vector<std::pair<std::string, double>>& learned) {
  std::string text;
  for (const auto& [name, value] : learned)
    text += (text.empty() ? "learned: " : ", ") + name + " " + human_number(value);
  return text.empty() ? "" : text + '\n';
}

}  // namespace ddprun::console
