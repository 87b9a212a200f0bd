#include "tools/export/csv.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "record/fields.hpp"

namespace ddprun::exporter {
namespace {

constexpr std::string_view kNewline = "\r\n";

// The shortest text that reads back as the same number.
template <class Number>
std::string shortest(Number value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// Only names and numbers, without commas or quotes: no field needs quotes.
class Line {
 public:
  void add(std::string_view field) {
    if (!first_) text_ += ',';
    first_ = false;
    text_ += field;
  }
  void add(double value) { add(std::isfinite(value) ? std::string_view(shortest(value)) : std::string_view()); }
  void add(int64_t value) { add(value < 0 ? std::string_view() : std::string_view(shortest(value))); }

  std::string ended() const { return text_ + std::string(kNewline); }

 private:
  std::string text_;
  bool first_ = true;
};

// A list does not fit into a CSV field.
void add_name(Line& line, const char* key, double) {
  line.add(std::string_view(key));
}
void add_name(Line& line, const char* key, int64_t) {
  line.add(std::string_view(key));
}
void add_name(Line&, const char*, const std::vector<double>&) {}
void add_value(Line& line, double value) {
  line.add(value);
}
void add_value(Line& line, int64_t value) {
  line.add(value);
}
void add_value(Line&, const std::vector<double>&) {}

template <class Record>
void add_names(Line& line) {
  const Record any;
  record::for_each_field(any, [&](const char* key, const auto& value) { add_name(line, key, value); });
}

template <class Record>
void add_values(Line& line, const Record& record) {
  record::for_each_field(record, [&](const char*, const auto& value) { add_value(line, value); });
}

}  // namespace

std::string steps_csv(const record::Run& run) {
  Line header;
  header.add(std::string_view("rank"));
  add_names<record::StepRecord>(header);
  std::string text = header.ended();
  for (std::size_t rank = 0; rank < run.steps.size(); ++rank) {
    for (const record::StepRecord& step : run.steps[rank]) {
      Line line;
      line.add(static_cast<int64_t>(rank));
      add_values(line, step);
      text += line.ended();
    }
  }
  return text;
}

std::string epochs_csv(const record::Run& run) {
  Line header;
  add_names<record::EpochRecord>(header);
  std::string text = header.ended();
  for (const record::EpochRecord& epoch : run.epochs) {
    Line line;
    add_values(line, epoch);
    text += line.ended();
  }
  return text;
}

}  // namespace ddprun::exporter
