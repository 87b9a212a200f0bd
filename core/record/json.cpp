#include "record/json.hpp"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

namespace ddprun::record {
namespace {

// Objects of numbers only, built in place: a step is recorded between two steps that are being timed.
class NumberObject {
 public:
  explicit NumberObject(std::string& out) : out_(out) { out_ += '{'; }
  ~NumberObject() { out_ += '}'; }

  void add(std::string_view key, int64_t value) {
    begin(key);
    append(value);
  }
  void add(std::string_view key, double value) {
    if (!std::isfinite(value)) return;
    begin(key);
    append(value);
  }
  // A place keeps its meaning in an array: what was not measured is null there.
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

}  // namespace

void append_json(std::string& out, const StepRecord& record) {
  NumberObject object(out);
  object.add("epoch", record.epoch);
  object.add("step", record.step);
  object.add("samples", record.samples);
  object.add("loss", record.loss);
  object.add("correct", record.correct);
  object.add("data", record.data);
  object.add("forward", record.forward);
  object.add("backward", record.backward);
  object.add("comm", record.comm);
  object.add("optimizer", record.optimizer);
  object.add("total", record.total);
}

void append_json(std::string& out, const EpochRecord& record) {
  NumberObject object(out);
  object.add("epoch", record.epoch);
  object.add("train.loss", record.train_loss);
  object.add("train.accuracy", record.train_accuracy);
  object.add("train.loss_by_rank", record.per_rank_loss);
  object.add("test.loss", record.test_loss);
  object.add("test.accuracy", record.test_accuracy);
  object.add("seconds", record.seconds);
}

std::string to_json(const Summary& summary) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  put(object, "test.accuracy", summary.test_accuracy);
  put(object, "test.loss", summary.test_loss);
  put(object, "train.loss", summary.train_loss);
  put(object, "total_time", summary.total_time);
  put(object, "avg_batch_time", summary.avg_batch_time);
  put(object, "avg_data_time", summary.avg_data_time);
  put(object, "avg_compute_time", summary.avg_compute_time);
  put(object, "throughput", summary.throughput);
  put(object, "split.forward", summary.split.forward);
  put(object, "split.backward", summary.split.backward);
  put(object, "split.comm", summary.split.comm);
  put(object, "split.optimizer", summary.split.optimizer);
  put(object, "steps", summary.steps);
  put(object, "epochs", summary.epochs);
  put(object, "world", summary.world);
  put(object, "seed", summary.seed);
  put(object, "model", summary.model);
  put(object, "data", summary.data);
  put(object, "strategy", summary.strategy);
  put(object, "backend", summary.backend);
  put(object, "algorithm", summary.algorithm);
  put(object, "transport", summary.transport);
  put(object, "peak_memory_bytes", summary.peak_memory_bytes);
  put(object, "page_faults", summary.page_faults);
  for (const auto& [name, value] : summary.learned) put(object, "learned." + name, value);
  return object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace ddprun::record
