// Data sets in real plugins: they are found, checked, and fetched from.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "data/loader.hpp"
#include "data/opening.hpp"
#include "support/error_of.hpp"
#include "support/paths.hpp"
#include "support/text.hpp"
#include "testing/temp_dir.hpp"

using namespace ddprun;
using namespace ddprun::data;
using namespace ddprun::testing;

namespace {

const std::string kFakes = build_dir() + "/tests/fakes";
const plugin::Registry kRegistry({kFakes});

Splits open(const std::string& name, std::map<std::string, std::string> options = {}, uint64_t seed = 0) {
  return open_dataset({name, {"", std::move(options), seed}}, kRegistry);
}

std::string open_error(const std::string& name, std::map<std::string, std::string> options = {},
                       const std::string& root = "") {
  return error_of([&] { open_dataset({name, {root, std::move(options), 0}}, kRegistry); });
}

// The key of the DatasetError that opening throws.
std::string key_of(const DataOptions& options) {
  try {
    open_dataset(options, kRegistry);
  } catch (const DatasetError& error) {
    return error.key();
  }
  return "no error";
}

std::string lie(const std::string& about) {
  return open_error("liar", {{"lie", about}});
}

std::string liar(const std::string& rest) {
  return "3: dataset plugin \"liar\": " + rest;
}

}  // namespace

TEST_CASE("a plugin opens like a built-in data set") {
  const Splits splits = open("counting", {{"samples", "7"}}, 40);
  CHECK(splits.train->size() == 7);
  CHECK(splits.test->size() == 5);
  CHECK(splits.train->input().shape == std::vector<int64_t>{2});
  CHECK(splits.train->input().type == ElementType::float32);
  CHECK(splits.train->target().shape.empty());
  CHECK(splits.train->target().type == ElementType::int64);
  CHECK(splits.train->classes() == std::vector<std::string>{"none", "one", "two"});
  const auto samples = fetch<int64_t>(*splits.train, {5, 0});
  CHECK(samples.inputs == std::vector<float>{45, 0, 40, 0});
  CHECK(samples.targets == std::vector<int64_t>{2, 0});
}

TEST_CASE("the epoch reaches the plugin") {
  const Splits splits = open("counting");
  float input[2];
  int64_t target = 0;
  splits.train->fetch(std::vector<int64_t>{3}, 9, input, &target);
  CHECK(input[1] == 9);
}

TEST_CASE("a plugin is found by its path too") {
  CHECK(open(kFakes + "/libddprun_dataset_counting.so").train->size() == 10);
  CHECK(open_error("./nothing.so").ends_with("/nothing.so: not found: there is no such file"));
}

TEST_CASE("a data set may have no test split") {
  CHECK(open("counting", {{"test_samples", "0"}}).test == nullptr);
}

TEST_CASE("the error for an unknown name has all names, the search path and the nearest name") {
  const std::string error = open_error("countng");
  CHECK(error.starts_with("2: expected \"linear\", \"mnist\", "));
  CHECK(error.ends_with("\"threaded\" or \"throwing\" (did you mean \"counting\"?); plugins are looked for in " +
                        kFakes));
  // A plugin with the name of a built-in data set is listed once.
  CHECK(error.find("\"mnist\"") == error.rfind("\"mnist\""));
  CHECK(key_of({"countng", {}}) == "name");
}

TEST_CASE("an existing plugin is refused if it is incomplete") {
  CHECK(open_error("no_fetch") ==
        "3: dataset plugin " + kFakes + "/libddprun_dataset_no_fetch.so: incomplete: fetch is null");
}

TEST_CASE("a plugin with the name of a built-in data set is refused, neither used nor ignored silently") {
  const std::string path = kFakes + "/libddprun_dataset_mnist.so";
  const std::string refusal =
      "dataset plugin " + path + ": wrong name: \"mnist\" is a data set that comes with ddprun; rename the plugin";
  CHECK(find_dataset("mnist", kRegistry).path.empty());
  CHECK(open_error(path) == "3: " + refusal);
  std::size_t seen = 0;
  for (const plugin::Listed& listed : list_plugins(kRegistry)) {
    if (listed.name != "mnist") continue;
    CHECK(std::get<std::string>(listed.content) == refusal);
    ++seen;
  }
  CHECK(seen == 1);
}

TEST_CASE("a user error that a plugin reports keeps its key and its reason") {
  CHECK(open_error("counting", {}, "nowhere") == "2: nowhere: no such folder; create it");
  CHECK(key_of({"counting", {"nowhere", {}, 0}}) == "root");
}

TEST_CASE("an unreadable sample is reported with the plugin's message, in the loader's thread too") {
  const Splits splits = open("counting", {{"fail_at", "6"}});
  CHECK_NOTHROW(fetch<int64_t>(*splits.train, {5, 7}));
  CHECK(error_of([&] { fetch<int64_t>(*splits.train, {5, 6}); }) == "2: counting/6.bin: byte 0: unreadable");
  for (const int workers : {0, 2}) {
    const auto loader = make_loader(*splits.train, {workers, 2});
    loader->start({{0, 1}, {6}}, 0);
    Batch batch;
    CHECK(loader->next(batch));
    CHECK(error_of([&] { loader->next(batch); }) == "2: counting/6.bin: byte 0: unreadable");
  }
}

TEST_CASE("a failure without a reason") {
  const Splits splits = open("counting");
  CHECK(error_of([&] { fetch<int64_t>(*splits.train, {10}); }) ==
        "1: data set \"counting\": the data set does not say why");
}

TEST_CASE("what a plugin reports about itself is checked") {
  CHECK(open_error("liar") == "no error");
  CHECK(lie("struct_size") == "no error");
  CHECK(lie("no_train") == liar("opened without a training split"));
  CHECK(lie("one_split") == liar("gave one split as both training and test split"));
  CHECK(lie("size") == liar("a split of 0 samples"));
  CHECK(lie("negative_size") == liar("a split of -1 samples"));
  CHECK(lie("type") == liar("the input has the element type 9, which this ddprun does not know"));
  CHECK(lie("dimensions") == liar("the input has 2147483648 dimensions"));
  CHECK(lie("null_shape") == liar("the shape of the input is null"));
  CHECK(lie("no_extent") == liar("the input has an extent of 0"));
  CHECK(lie("overflow") == liar("the input has an extent of 4611686018427387904"));
  CHECK(lie("class_count") == liar("18446744073709551615 classes"));
  CHECK(lie("null_classes") == liar("classes is null"));
  CHECK(lie("null_class") == liar("the name of class 1 is null"));
  CHECK(lie("no_classes") == liar("the target is a class, but there are no classes"));
  CHECK(lie("test_differs") == liar("its training and test samples differ in shape or type"));
  CHECK(lie("classes_differ") == liar("its training and test classes differ"));
  CHECK(lie("status") == liar("unknown status 77: the data set does not say why"));
  CHECK(lie("silent") == "1: data set \"liar\": the data set does not say why");
}

TEST_CASE("texts of a plugin are read within their bounds and as one line") {
  CHECK(lie("unterminated") == "2: " + std::string(1024, 'r'));
  CHECK(key_of({"liar", {"", {{"lie", "unterminated"}}, 0}}) == std::string(128, 'k'));
  CHECK(lie("lines") == "2: one?two?[31m");
  CHECK(key_of({"liar", {"", {{"lie", "lines"}}, 0}}) == "name");
}

TEST_CASE("every opened split is closed, whatever its error") {
  CHECK(lie("open_splits") == "1: data set \"liar\": 0 open");
  {
    const Splits splits = open("liar");
    CHECK(lie("open_splits") == "1: data set \"liar\": 2 open");
  }
  CHECK(lie("open_splits") == "1: data set \"liar\": 0 open");
}

TEST_CASE("a label outside the classes is refused before it reaches a loss") {
  const Splits splits = open("liar", {{"lie", "label"}});
  CHECK(error_of([&] { fetch<int64_t>(*splits.train, {2}); }) ==
        liar("sample 2 is of class 1, but the classes are 0 to 0"));
}

TEST_CASE("a token outside the vocabulary is refused before it reaches an embedding") {
  CHECK(lie("float_tokens") == liar("tokens that are not int64"));
  CHECK(lie("vocabulary") == liar("a vocabulary of 18446744073709551615"));
  const Splits splits = open("liar", {{"lie", "token"}});
  CHECK(splits.train->vocabulary() == 3);
  std::vector<int64_t> inputs(4), targets(2);
  CHECK(error_of([&] {
          splits.train->fetch(std::vector<int64_t>{2, 1}, 0, inputs.data(), targets.data());
        }) == liar("sample 1 has the token 3, but the tokens are 0 to 2"));
}

TEST_CASE("an exception that crosses the ABI boundary is an error of the plugin") {
  const std::string rule = "; a plugin must return a status instead";
  CHECK(open_error("throwing", {{"in", "open"}}) ==
        "3: data set \"throwing\": the plugin threw \"no open today\"" + rule);
  CHECK(open_error("throwing", {{"in", "describe"}}) ==
        "3: data set \"throwing\": the plugin threw \"no describe today\"" + rule);
  const Splits splits = open("throwing");
  CHECK(error_of([&] { fetch<int64_t>(*splits.train, {0}); }) ==
        "3: data set \"throwing\": the plugin threw something unknown" + rule);
}

TEST_CASE("many threads fetch from one split at once") {
  const Splits splits = open("counting", {{"samples", "1000"}, {"fail_at", "999"}});
  std::atomic<int> wrong = 0, refused = 0;
  const auto work = [&](int64_t first) {
    for (int64_t index = first; index < 1000; index += 8) {
      try {
        const auto sample = fetch<int64_t>(*splits.train, {index});
        if (sample.inputs[0] != static_cast<float>(index) || sample.targets[0] != index % 3) ++wrong;
      } catch (const DatasetError&) {
        ++refused;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int64_t first = 0; first < 8; ++first) threads.emplace_back(work, first);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(refused == 1);
}
