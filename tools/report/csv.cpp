#include <charconv>
#include <cmath>
#include <filesystem>

#include "base/file.hpp"
#include "base/log.hpp"
#include "record/fields.hpp"
#include "record/run_dir.hpp"
#include "tools/report/report.hpp"

namespace ddprun::report {
namespace {

// The shortest text that reads back as the same number; "" for a figure that was not measured.
template <class Number>
std::string text_of(Number value) {
  if (std::is_same_v<Number, int64_t> ? value < 0 : !std::isfinite(value)) return "";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// One field of each member, with a comma before it. A list does not fit into a field. No field has commas or quotes.
template <class Record, class Make>
std::string fields_of(const Record& record, Make make) {
  std::string text;
  record::for_each_field(record, [&](const char* key, const auto& value) {
    constexpr bool kIsList = std::is_same_v<decltype(value), const std::vector<double>&>;
    if constexpr (!kIsList) text.append(1, ',').append(make(key, value));
  });
  return text + "\r\n";
}

constexpr auto kName = [](const char* key, const auto&) { return std::string(key); };
constexpr auto kValue = [](const char*, const auto& value) { return text_of(value); };

}  // namespace

std::string steps_csv(const tools::Run& run) {
  std::string text = "rank" + fields_of(record::StepRecord(), kName);
  for (std::size_t rank = 0; rank < run.steps.size(); ++rank) {
    for (const record::StepRecord& step : run.steps[rank]) text += std::to_string(rank) + fields_of(step, kValue);
  }
  return text;
}

std::string epochs_csv(const tools::Run& run) {
  std::string text = fields_of(record::EpochRecord(), kName).substr(1);
  for (const record::EpochRecord& epoch : run.epochs) text += fields_of(epoch, kValue).substr(1);
  return text;
}

std::vector<std::string> write_csv(const std::string& run_dir, const std::string& place) {
  const tools::Run run = tools::read_run_so_far(run_dir);
  if (const std::string state = tools::state_of(run); !state.empty()) log::always(run_dir + ": " + state);
  std::vector<std::string> paths = {place};
  if (std::filesystem::is_directory(place)) {
    paths = {record::file_in(place, "steps.csv"), record::file_in(place, "epochs.csv")};
    replace_file(paths[1], epochs_csv(run));
  }
  replace_file(paths[0], steps_csv(run));
  return paths;
}

}  // namespace ddprun::report
