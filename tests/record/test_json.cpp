#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "record/fields.hpp"
#include "record/recorder.hpp"

using namespace ddprun::record;
using nlohmann::json;

namespace {

std::vector<std::string> keys_of(const std::string& text) {
  std::vector<std::string> keys;
  const auto object = nlohmann::ordered_json::parse(text);
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

// The value that a reader returns: absent if it was not finite.
bool same(const json& object, const char* key, double value) {
  return std::isfinite(value) ? object.at(key).get<double>() == value : !object.contains(key);
}

}  // namespace

TEST_CASE("a step is one line of numbers") {
  StepRecord step;
  step.epoch = 2;
  step.step = 470;
  step.samples = 32;
  step.loss = 0.4321;
  step.correct = 28;
  step.data = 0.001;
  step.forward = 1.5e-05;
  step.total = 0.0125;
  step.complete();
  CHECK(line_of(step) ==
        R"({"epoch":2,"step":470,"samples":32,"loss":0.4321,"correct":28.0,"accuracy":0.875,"data":0.001,)"
        R"("forward":1.5e-05,"backward":0.0,"comm":0.0,"optimizer":0.0,"total":0.0125,"throughput":2560.0})");
}

TEST_CASE("a step without samples has no accuracy, and one of a model without accuracy has throughput only") {
  StepRecord step;
  step.total = 0.5;
  step.complete();
  CHECK(std::isnan(step.accuracy));
  CHECK(step.throughput == 0);
  step.samples = 8;
  step.complete();
  CHECK(std::isnan(step.accuracy));
  CHECK(step.throughput == 16);
}

TEST_CASE("figures that are NaN have no key") {
  StepRecord step;
  step.loss = std::numeric_limits<double>::infinity();
  const json object = json::parse(line_of(step));
  CHECK_FALSE(object.contains("loss"));
  CHECK_FALSE(object.contains("correct"));
  CHECK(object.contains("total"));
}

TEST_CASE("every step record reads back bitwise equal") {
  const bool held = rc::check([] {
    StepRecord step;
    step.epoch = *rc::gen::nonNegative<int64_t>();
    step.step = *rc::gen::nonNegative<int64_t>();
    step.loss = *rc::gen::arbitrary<double>();
    step.comm = *rc::gen::arbitrary<double>();
    step.total = std::bit_cast<double>(*rc::gen::arbitrary<uint64_t>());
    const json object = json::parse(line_of(step));
    RC_ASSERT(object.at("epoch").get<int64_t>() == step.epoch);
    RC_ASSERT(object.at("step").get<int64_t>() == step.step);
    RC_ASSERT(same(object, "loss", step.loss));
    RC_ASSERT(same(object, "comm", step.comm));
    RC_ASSERT(same(object, "total", step.total));
  });
  CHECK(held);
}

TEST_CASE("an epoch keeps the position of a rank without a loss") {
  EpochRecord epoch;
  epoch.train_loss = 0.5;
  epoch.per_rank_loss = {0.25, kAbsent, 0.75};
  const std::string line = line_of(epoch);
  CHECK(line == R"({"epoch":1,"train.loss":0.5,"train.loss_by_rank":[0.25,null,0.75]})");
}

TEST_CASE("a metric of an epoch is found by its key") {
  EpochRecord epoch;
  epoch.train_accuracy = 0.75;
  epoch.validation_loss = 0.5;
  CHECK(metric_of(epoch, "validation.loss") == 0.5);
  CHECK(metric_of(epoch, "train.accuracy") == 0.75);
  CHECK(std::isnan(metric_of(epoch, "test.loss")));
  CHECK(line_of(epoch) == R"({"epoch":1,"train.accuracy":0.75,"validation.loss":0.5})");
}

TEST_CASE("a full summary has exactly the documented keys") {
  Summary summary;
  summary.test_accuracy = summary.test_loss = summary.train_loss = 0.5;
  summary.validation_accuracy = summary.validation_loss = 0.25;
  summary.total_time = summary.avg_batch_time = summary.avg_data_time = summary.avg_compute_time = 1;
  summary.throughput = 100;
  summary.split = {1, 2, 3, 4, 5, 6, 7, 8};
  summary.steps = summary.epochs = summary.world = summary.devices = summary.batch = summary.seed = 2;
  summary.comm_bytes = 4096;
  summary.comm_time = summary.comm_busbw = 0.5;
  summary.memory_by_device = {1 << 20, 2 << 20};
  summary.stopped = "early_stop";
  summary.best_epoch = 1;
  summary.model = summary.data = summary.strategy = summary.backend = summary.algorithm = summary.transport = "x";
  summary.peak_memory_bytes = 1024;
  summary.learned = {{"weight", 2.0}, {"bias", 3.0}};
  const std::vector<std::string> expected = {"test.accuracy",
                                             "test.loss",
                                             "validation.accuracy",
                                             "validation.loss",
                                             "train.loss",
                                             "total_time",
                                             "avg_batch_time",
                                             "avg_data_time",
                                             "avg_compute_time",
                                             "throughput",
                                             "split.forward",
                                             "split.backward",
                                             "split.comm",
                                             "split.optimizer",
                                             "split.scatter",
                                             "split.replicate",
                                             "split.gather",
                                             "split.reduce",
                                             "steps",
                                             "epochs",
                                             "world",
                                             "devices",
                                             "batch",
                                             "seed",
                                             "model",
                                             "data",
                                             "strategy",
                                             "backend",
                                             "algorithm",
                                             "transport",
                                             "comm.bytes",
                                             "comm.time",
                                             "comm.busbw",
                                             "peak_memory_bytes",
                                             "memory_by_device",
                                             "stopped",
                                             "best.epoch",
                                             "learned.weight",
                                             "learned.bias"};
  CHECK(keys_of(to_json(summary)) == expected);
  const json object = json::parse(to_json(summary));
  CHECK(object.at("split.comm").get<double>() == 3);
  CHECK(object.at("learned.bias").get<double>() == 3);
}

TEST_CASE("an empty summary is an empty object") {
  CHECK(json::parse(to_json(Summary{})) == json::object());
}

TEST_CASE("names with quotes or broken UTF-8 still give valid JSON") {
  Summary summary;
  summary.model = "say \"hi\"\n";
  summary.data = "caf\xe9";
  const json object = json::parse(to_json(summary));
  CHECK(object.at("model") == summary.model);
  CHECK(object.at("data").get<std::string>().starts_with("caf"));
}
