#include <boost/algorithm/string/join.hpp>
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

using Fields = std::vector<std::string>;

// `fields`, then one of each member. A list does not fit into a field. No field has commas or quotes.
template <class Record, class Make>
std::string line_of(const Record& record, Fields fields, Make make) {
  record::for_each_field(record, [&](const char* key, const auto& value) {
    if constexpr (!std::is_same_v<decltype(value), const std::vector<double>&>) fields.push_back(make(key, value));
  });
  const std::string comma = ",";  // GCC 12 warns of a literal here
  return boost::algorithm::join(fields, comma) + "\r\n";
}

template <class Record>
std::string names_of(const Fields& first = {}) {
  return line_of(Record(), first, [](const char* key, const auto&) { return key; });
}

template <class Record>
std::string values_of(const Record& record, const Fields& first = {}) {
  return line_of(record, first, [](const char*, const auto& value) { return text_of(value); });
}

}  // namespace

std::string steps_csv(const tools::Run& run) {
  std::string text = names_of<record::StepRecord>({"rank"});
  for (std::size_t rank = 0; rank < run.steps.size(); ++rank) {
    for (const record::StepRecord& step : run.steps[rank]) text += values_of(step, {std::to_string(rank)});
  }
  return text;
}

std::string epochs_csv(const tools::Run& run) {
  std::string text = names_of<record::EpochRecord>();
  for (const record::EpochRecord& epoch : run.epochs) text += values_of(epoch);
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
