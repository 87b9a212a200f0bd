#include "train/loop/position.hpp"

#include "base/text.hpp"
#include "ddprun/error.hpp"

namespace ddprun::train {
namespace {

const std::string kNumber = "number.";

template <class Number>
Number number_of(const checkpoint::File& file, const std::string& key) {
  const auto found = file.metadata.find(key);
  if (found != file.metadata.end()) {
    if (const auto value = parse_number<Number>(found->second)) return *value;
  }
  throw Error(ExitCode::usage, file.path + ": \"" + key + "\" is missing or no number: not a state of this ddprun");
}

}  // namespace

void write_position(const Position& position, checkpoint::Metadata& metadata) {
  metadata["step"] = std::to_string(position.step);
  metadata["epoch"] = std::to_string(position.epoch);
  metadata["step_of_epoch"] = std::to_string(position.step_of_epoch);
  metadata["epoch.loss"] = exact_text(position.totals.loss);
  metadata["epoch.correct"] = exact_text(position.totals.correct);
  metadata["epoch.samples"] = std::to_string(position.totals.samples);
  for (const auto& [name, value] : position.numbers) metadata[kNumber + name] = exact_text(value);
}

Position read_position(const checkpoint::File& file) {
  Position position;
  position.step = integer_of(file, "step");
  position.epoch = integer_of(file, "epoch");
  position.step_of_epoch = integer_of(file, "step_of_epoch");
  position.totals = {number_of<double>(file, "epoch.loss"), number_of<double>(file, "epoch.correct"),
                     integer_of(file, "epoch.samples")};
  for (const auto& [key, text] : file.metadata) {
    if (key.starts_with(kNumber)) position.numbers[key.substr(kNumber.size())] = number_of<double>(file, key);
  }
  return position;
}

int64_t integer_of(const checkpoint::File& file, const std::string& key) {
  return number_of<int64_t>(file, key);
}

double double_of(const checkpoint::File& file, const std::string& key) {
  return number_of<double>(file, key);
}

}  // namespace ddprun::train
