#include "data/plugin_dataset.hpp"

namespace ddprun::data {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 40;  // of one sample; what is beyond it is no extent

ddprun_dataset_error empty_error() {
  ddprun_dataset_error error{};
  error.struct_size = sizeof error;
  return error;
}

void throw_unless_ok(int32_t status, const ddprun_dataset_error& error) {
  if (status == DDPRUN_DATASET_OK) return;
  if (status == DDPRUN_DATASET_INVALID) throw DatasetError(error.key, error.reason);
  throw Error(ExitCode::failure, error.reason);
}

[[noreturn]] void refuse(const ddprun_dataset_plugin& table, const std::string& why) {
  throw Error(ExitCode::plugin, "dataset plugin \"" + std::string(table.name) + "\": " + why);
}

Field checked_field(const ddprun_dataset_plugin& table, const ddprun_dataset_field& given, const char* which) {
  if (given.type > DDPRUN_ELEMENT_INT64) {
    refuse(table, std::string(which) + " has the element type " + std::to_string(given.type) +
                      ", which this ddprun does not know");
  }
  Field field{{}, static_cast<ElementType>(given.type)};
  int64_t elements = 1;
  for (uint32_t i = 0; i < given.dimensions; ++i) {
    const int64_t extent = given.shape[i];
    if (extent < 1 || extent > kMostElements / elements) {
      refuse(table, std::string(which) + " has an extent of " + std::to_string(extent));
    }
    elements *= extent;
    field.shape.push_back(extent);
  }
  return field;
}

using Handle = std::unique_ptr<ddprun_dataset, void (*)(ddprun_dataset*)>;

class PluginDataset final : public Dataset {
 public:
  PluginDataset(const ddprun_dataset_plugin& table, Handle split) : table_(table), split_(std::move(split)) {
    ddprun_dataset_info info{};
    info.struct_size = sizeof info;
    table.describe(split_.get(), &info);
    if (info.size < 1) refuse(table, "a split of " + std::to_string(info.size) + " samples");
    size_ = info.size;
    input_ = checked_field(table, info.input, "input");
    target_ = checked_field(table, info.target, "target");
    for (uint64_t i = 0; i < info.class_count; ++i) classes_.emplace_back(info.classes[i]);
  }

  int64_t size() const override { return size_; }
  const Field& input() const override { return input_; }
  const Field& target() const override { return target_; }
  const std::vector<std::string>& classes() const override { return classes_; }

  void fetch(std::span<const int64_t> indices, int64_t epoch, void* inputs, void* targets) const override {
    ddprun_dataset_error error = empty_error();
    const int32_t status = table_.fetch(split_.get(), indices.data(), indices.size(), epoch, inputs, targets, &error);
    throw_unless_ok(status, error);
  }

 private:
  const ddprun_dataset_plugin& table_;
  const Handle split_;
  int64_t size_ = 0;
  Field input_;
  Field target_;
  std::vector<std::string> classes_;
};

bool same(const Field& a, const Field& b) {
  return a.shape == b.shape && a.type == b.type;
}

}  // namespace

Splits open_splits(const ddprun_dataset_plugin& table, const DatasetContext& context) {
  std::vector<ddprun_dataset_option> options;
  for (const auto& [key, value] : context.options) options.push_back({key.c_str(), value.c_str()});
  const ddprun_dataset_request request{sizeof request, static_cast<uint32_t>(options.size()), context.root.c_str(),
                                       options.data(), context.seed};
  ddprun_dataset* train = nullptr;
  ddprun_dataset* test = nullptr;
  ddprun_dataset_error error = empty_error();
  throw_unless_ok(table.open(&request, &train, &test, &error), error);
  Handle train_handle(train, table.close);
  Handle test_handle(test, table.close);
  if (train == nullptr) refuse(table, "opened without a training split");
  Splits splits{std::make_unique<PluginDataset>(table, std::move(train_handle)), nullptr};
  if (test != nullptr) splits.test = std::make_unique<PluginDataset>(table, std::move(test_handle));
  if (splits.test == nullptr) return splits;
  if (!same(splits.train->input(), splits.test->input()) || !same(splits.train->target(), splits.test->target())) {
    refuse(table, "its training and test samples differ in shape or type");
  }
  if (splits.train->classes() != splits.test->classes()) refuse(table, "its training and test classes differ");
  return splits;
}

}  // namespace ddprun::data
