#include "record/recorder.hpp"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "record/fields.hpp"

namespace ddprun::record {
namespace {

// Objects of numbers, written directly without a JSON library, because this runs between two timed steps.
class NumberObject {
 public:
  explicit NumberObject(std::string& out) : out_(out) { out_ += '{'; }
  ~NumberObject() { out_ += '}'; }

  void add(std::string_view key, int64_t value) {
    if (value < 0) return;
    begin(key);
    append(value);
  }
  void add(std::string_view key, double value) {
    if (!std::isfinite(value)) return;
    begin(key);
    append(value);
  }
  // In an array the position matters, so a value that was not measured is null.
  void add(std::string_view key, const std::vector<double>& values) {
    if (values.empty()) return;
    begin(key);
    char before = '[';
    for (const double value : values) {
      out_ += before;
      before = ',';
      if (std::isfinite(value)) {
        append(value);
      } else {
        out_ += "null";
      }
    }
    out_ += ']';
  }

 private:
  // The shortest text that reads back as the same number.
  template <class Number>
  void append(Number value) {
    char text[32];
    out_.append(text, std::to_chars(text, text + sizeof text, value).ptr);
  }

  void begin(std::string_view key) {
    if (!first_) out_ += ',';
    first_ = false;
    out_ += '"';
    out_ += key;
    out_ += "\":";
  }

  std::string& out_;
  bool first_ = true;
};

void put(nlohmann::ordered_json& object, const std::string& key, double value) {
  if (std::isfinite(value)) object[key] = value;
}
void put(nlohmann::ordered_json& object, const std::string& key, int64_t value) {
  if (value >= 0) object[key] = value;
}
void put(nlohmann::ordered_json& object, const std::string& key, const std::string& value) {
  if (!value.empty()) object[key] = value;
}
void put(nlohmann::ordered_json& object, const std::string& key, const std::vector<int64_t>& values) {
  if (!values.empty()) object[key] = values;
}

template <class Record>
void append(std::string& out, const Record& record) {
  NumberObject object(out);
  for_each_field(record, [&](std::string_view key, const auto& value) { object.add(key, value); });
}

nlohmann::ordered_json object_of(const TensorDigest& print) {
  return {{"hash", print.hash}, {"norm", print.norm}, {"sketch", print.sketch}};
}

}  // namespace

void append_json(std::string& out, const StepRecord& record) {
  append(out, record);
}

void append_json(std::string& out, const EpochRecord& record) {
  append(out, record);
}

void append_json(std::string& out, const GpuRecord& record) {
  append(out, record);
}

void append_json(std::string& out, const ParityRecord& record) {
  nlohmann::ordered_json object = {{"step", record.step},
                                   {"parameter", record.parameter},
                                   {"elements", record.elements},
                                   {"gradient", object_of(record.gradient)},
                                   {"value", object_of(record.value)}};
  if (std::isfinite(record.ulp_max)) object["ulp"] = {{"max", record.ulp_max}, {"mean", record.ulp_mean}};
  out += object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string to_json(const Summary& summary) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for_each_field(summary, [&](const char* key, const auto& value) { put(object, key, value); });
  for (const auto& [name, value] : summary.learned) put(object, "learned." + name, value);
  return object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace ddprun::record
