#include "train/loop/position.hpp"

namespace ddprun::train {
namespace {

const std::string kNumber = "number.";

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
  position.step = number_of<int64_t>(file, "step");
  position.epoch = number_of<int64_t>(file, "epoch");
  position.step_of_epoch = number_of<int64_t>(file, "step_of_epoch");
  position.totals = {number_of<double>(file, "epoch.loss"), number_of<double>(file, "epoch.correct"),
                     number_of<int64_t>(file, "epoch.samples")};
  for (const auto& [key, text] : file.metadata) {
    if (key.starts_with(kNumber)) position.numbers[key.substr(kNumber.size())] = number_of<double>(file, key);
  }
  return position;
}

}  // namespace ddprun::train
