#include "support/torch_test.hpp"

#include <cmath>

#include "support/error_of.hpp"
#include "train/loop/policies.hpp"
#include "train/loop/position.hpp"

namespace ddprun::train {
namespace {

TEST_CASE("a position is restored exactly from metadata, including absent values") {
  const Position position{14, 1, 4, {0.1 + 0.2, NAN, 96}, {{kBestValue, 1.0 / 3}, {"scale", 65536}}};
  checkpoint::File file;
  write_position(position, file.metadata);
  file.metadata.emplace("world", "2");  // other writers may add keys
  const Position again = read_position(file);
  CHECK(again.step == 14);
  CHECK(again.epoch == 1);
  CHECK(again.step_of_epoch == 4);
  CHECK(again.totals.loss == 0.1 + 0.2);
  CHECK(std::isnan(again.totals.correct));
  CHECK(again.totals.samples == 96);
  CHECK(again.numbers == position.numbers);
}

TEST_CASE("a key that is missing or not a number is reported with its file") {
  checkpoint::File file;
  file.path = "a.safetensors";
  write_position({}, file.metadata);
  const auto expected = [](const char* word) {
    return "2: a.safetensors: \"" + std::string(word) + "\" is missing or no number: not a state of this ddprun";
  };
  checkpoint::File other = file;
  other.metadata.erase("step_of_epoch");
  CHECK(testing::error_of([&] { read_position(other); }) == expected("step_of_epoch"));
  for (const char* text : {"", "x", "1.5", " 1", "1 ", "99999999999999999999"}) {
    CAPTURE(text);
    other = file;
    other.metadata["step"] = text;
    CHECK(testing::error_of([&] { read_position(other); }) == expected("step"));
  }
}

TEST_CASE("losses are better lower, accuracies higher, and NaN is never better") {
  CHECK(is_better("test.loss", 0.4, 0.5));
  CHECK_FALSE(is_better("test.loss", 0.5, 0.5));
  CHECK(is_better("test.accuracy", 0.6, 0.5));
  CHECK_FALSE(is_better("test.accuracy", 0.4, 0.5));
  CHECK(is_better("train.loss", 9, NAN));
  CHECK_FALSE(is_better("train.loss", NAN, 9));
  CHECK_FALSE(is_better("train.loss", NAN, NAN));
}

}  // namespace
}  // namespace ddprun::train
