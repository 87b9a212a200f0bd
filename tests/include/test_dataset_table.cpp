// dataset_plugin.hpp: the adapter between the C table and a C++ data set.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "ddprun/plugin/dataset_options.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"

namespace {

using ddprun::DatasetContext;
using ddprun::InvalidDataset;

// A test sets what the data set does, and reads what it recorded.
struct Script {
  std::function<void(const DatasetContext&)> on_open = [](const DatasetContext&) {};
  std::function<void()> on_fetch = [] {};
  std::function<void()> on_size = [] {};
  bool train = true, test = true;
  int closed = 0;
};
Script script;

class Scripted final : public ddprun::Dataset {
 public:
  explicit Scripted(int64_t size) : size_(size) {}
  ~Scripted() override { ++script.closed; }
  int64_t size() const override {
    script.on_size();
    return size_;
  }
  const ddprun::Field& input() const override { return input_; }
  const ddprun::Field& target() const override { return target_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  void fetch(std::span<const int64_t> indices, int64_t epoch, void* inputs, void* targets) const override {
    ddprun::check_indices(indices, size_);
    script.on_fetch();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      static_cast<float*>(inputs)[i] = static_cast<float>(epoch);
      static_cast<int64_t*>(targets)[i] = indices[i];
    }
  }

 private:
  int64_t size_;
  ddprun::Field input_{{1, 1}, ddprun::ElementType::float32};
  ddprun::Field target_{{}, ddprun::ElementType::int64};
  std::vector<std::string> classes_{"cat", "dög"};
};

ddprun::Splits open_scripted(const DatasetContext& context) {
  script.on_open(context);
  ddprun::Splits splits;
  if (script.train) splits.train = std::make_unique<Scripted>(20);
  if (script.test) splits.test = std::make_unique<Scripted>(10);
  return splits;
}

constexpr ddprun_option_spec kOptions[] = {ddprun::integer_option("samples", "1", "1", "9", "how many")};
constexpr ddprun_dataset_plugin kTable = ddprun::detail::dataset_table<open_scripted>("scripted", "1", "for tests");

// One call of open(), as a host makes it, and its results. Replaces the script.
struct Opened {
  explicit Opened(const Script& wanted, std::vector<ddprun_dataset_option> options = {}) {
    script = wanted;
    const ddprun_dataset_request request{sizeof request, static_cast<uint32_t>(options.size()), "a/folder",
                                         options.data(), 42};
    status = kTable.open(&request, &train, &test, &error);
  }
  ~Opened() {
    if (train != nullptr) kTable.close(train);
    if (test != nullptr) kTable.close(test);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  std::string key() const { return error.key; }
  std::string reason() const { return error.reason; }

  ddprun_dataset* train = nullptr;
  ddprun_dataset* test = nullptr;
  ddprun_dataset_error error{};
  int32_t status = -1;
};

Script opening(std::function<void(const DatasetContext&)> on_open) {
  Script wanted;
  wanted.on_open = std::move(on_open);
  return wanted;
}

Script fetching(std::function<void()> on_fetch) {
  Script wanted;
  wanted.on_fetch = std::move(on_fetch);
  return wanted;
}

int32_t fetch(Opened& opened, std::vector<int64_t> indices, float* inputs, int64_t* targets) {
  return kTable.fetch(opened.train, indices.data(), indices.size(), 7, inputs, targets, &opened.error);
}

}  // namespace

TEST_CASE("an exception in describe does not cross the ABI boundary: the split has no samples") {
  Script failing;
  failing.on_size = [] { throw std::runtime_error("no size today"); };
  const Opened opened(failing);
  ddprun_dataset_info info{};
  info.struct_size = sizeof info;
  info.size = 1;
  kTable.describe(opened.train, &info);
  CHECK(info.size == 0);
}

TEST_CASE("root, options and seed reach the class unchanged") {
  DatasetContext seen;
  const Opened opened(opening([&](const DatasetContext& context) { seen = context; }),
                      {{"shape", "3x4"}, {"empty", ""}, {"letter", "ß = \"x\""}});
  CHECK(opened.status == DDPRUN_DATASET_OK);
  CHECK(seen.root == "a/folder");
  CHECK(seen.seed == 42);
  CHECK(seen.options == std::map<std::string, std::string>{{"shape", "3x4"}, {"empty", ""}, {"letter", "ß = \"x\""}});
}

TEST_CASE("describe returns what the class reports for each split") {
  const Opened opened{Script{}};
  for (const auto& [split, size] : {std::pair{opened.train, 20}, std::pair{opened.test, 10}}) {
    ddprun_dataset_info info{};
    info.struct_size = sizeof info;
    kTable.describe(split, &info);
    CHECK(info.struct_size == sizeof info);
    CHECK(info.size == size);
    REQUIRE(info.input.dimensions == 2);
    CHECK(info.input.shape[0] == 1);
    CHECK(info.input.type == DDPRUN_ELEMENT_FLOAT32);
    CHECK(info.target.dimensions == 0);
    CHECK(info.target.type == DDPRUN_ELEMENT_INT64);
    REQUIRE(info.class_count == 2);
    CHECK(std::string(info.classes[1]) == "dög");
  }
}

TEST_CASE("fetch writes the samples, with the epoch, in the order of the indices") {
  Opened opened{Script{}};
  float inputs[3] = {};
  int64_t targets[3] = {};
  CHECK(fetch(opened, {19, 0, 5}, inputs, targets) == DDPRUN_DATASET_OK);
  CHECK(std::vector<float>(inputs, inputs + 3) == std::vector<float>{7, 7, 7});
  CHECK(std::vector<int64_t>(targets, targets + 3) == std::vector<int64_t>{19, 0, 5});
}

TEST_CASE("a data set without a test split leaves it null, and each split is closed once") {
  Script wanted;
  wanted.test = false;
  {
    const Opened opened(wanted);
    CHECK(opened.status == DDPRUN_DATASET_OK);
    CHECK(opened.train != nullptr);
    CHECK(opened.test == nullptr);
  }
  CHECK(script.closed == 1);
  { const Opened opened{Script{}}; }
  CHECK(script.closed == 2);
}

TEST_CASE("a data set without a training split is a failure, and nothing stays open") {
  Script wanted;
  wanted.train = false;
  const Opened opened(wanted);
  CHECK(opened.status == DDPRUN_DATASET_FAILURE);
  CHECK(opened.reason() == "the data set was opened without a training split");
  CHECK(opened.train == nullptr);
  CHECK(opened.test == nullptr);
  CHECK(script.closed == 1);
}

TEST_CASE("an error that the user can correct keeps its key, in open and in fetch") {
  const Opened refused(opening([](const DatasetContext& context) {
                         ddprun::DatasetOptions("scripted", context, kOptions).integer("samples");
                       }),
                       {{"samples", "ten"}});
  CHECK(refused.status == DDPRUN_DATASET_INVALID);
  CHECK(refused.key() == "options.samples");
  CHECK(refused.reason() == "expected an integer from 1 to 9");
  CHECK(refused.train == nullptr);

  Opened opened(fetching([] { throw InvalidDataset("root", "a/folder/5.png: byte 12: no PNG"); }));
  float input = 0;
  int64_t target = 0;
  CHECK(fetch(opened, {5}, &input, &target) == DDPRUN_DATASET_INVALID);
  CHECK(opened.key() == "root");
  CHECK(opened.reason() == "a/folder/5.png: byte 12: no PNG");
}

TEST_CASE("any other exception is a failure with its message, and none crosses the ABI boundary") {
  const auto status_of = [](std::function<void()> thrown, std::string& reason) {
    Opened opened(fetching(std::move(thrown)));
    float input = 0;
    int64_t target = 0;
    const int32_t status = fetch(opened, {5}, &input, &target);
    CHECK(opened.key().empty());
    reason = opened.reason();
    return status;
  };
  std::string reason;
  CHECK(status_of([] { throw std::runtime_error("no luck"); }, reason) == DDPRUN_DATASET_FAILURE);
  CHECK(reason == "no luck");
  CHECK(status_of([] { throw std::bad_alloc(); }, reason) == DDPRUN_DATASET_FAILURE);
  CHECK(reason == "out of memory");
  CHECK(status_of([] { throw 42; }, reason) == DDPRUN_DATASET_FAILURE);
  CHECK(reason == "unknown exception");

  Opened opened{Script{}};
  float input = 0;
  int64_t target = 0;
  CHECK(fetch(opened, {20}, &input, &target) == DDPRUN_DATASET_FAILURE);
  CHECK(opened.reason() == "sample 20 of a data set that holds 20");
}

TEST_CASE("texts that are too long are cut between characters, and end with a null byte") {
  const auto cut = [](const std::string& key, const std::string& reason) {
    const Opened opened(opening([&](const DatasetContext&) { throw InvalidDataset(key, reason); }));
    return std::pair{opened.key(), opened.reason()};
  };
  CHECK(cut(std::string(127, 'k'), std::string(1023, 'r')) == std::pair{std::string(127, 'k'), std::string(1023, 'r')});
  CHECK(cut(std::string(500, 'k'), std::string(5000, 'r')) == std::pair{std::string(127, 'k'), std::string(1023, 'r')});
  // "ß" has two bytes; only the first would fit.
  CHECK(cut(std::string(126, 'k') + "ß", std::string(1022, 'r') + "ß") ==
        std::pair{std::string(126, 'k'), std::string(1022, 'r')});
  CHECK(cut("k", std::string(1021, 'r') + "ß").second == std::string(1021, 'r') + "ß");
}
