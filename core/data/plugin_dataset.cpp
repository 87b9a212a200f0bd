#include "data/datasets.hpp"

#include <cstring>

#include "ddprun/plugin/words.hpp"
#include "plugin/call.hpp"
#include "plugin/options.hpp"

namespace ddprun::data {
namespace {

// Larger values in a description are rejected.
constexpr int64_t kMostElements = int64_t{1} << 40;  // elements of one sample
constexpr uint32_t kMostDimensions = 64;             // the maximum of a tensor
constexpr uint64_t kMostClasses = 1 << 20;
constexpr std::size_t kLongestClass = 1000;  // bytes

// One line, for any text.
std::string one_line(const char* text, std::size_t most) {
  return printable({text, ::strnlen(text, most)});
}

[[noreturn]] void refuse(const ddprun_dataset_plugin& table, const std::string& why) {
  throw Error(ExitCode::plugin, "dataset plugin \"" + std::string(table.name) + "\": " + why);
}

void throw_unless_ok(const ddprun_dataset_plugin& table, int32_t status, const ddprun_dataset_error& error) {
  if (status == DDPRUN_DATASET_OK) return;
  std::string reason = one_line(error.reason, sizeof error.reason);
  if (reason.empty()) reason = "the data set does not say why";
  if (status == DDPRUN_DATASET_FAILURE) throw Error(ExitCode::failure, plugin::described(table) + ": " + reason);
  if (status != DDPRUN_DATASET_INVALID) refuse(table, "unknown status " + std::to_string(status) + ": " + reason);
  const std::string key = one_line(error.key, sizeof error.key);
  throw DatasetError(key.empty() ? "name" : key, reason);
}

Field checked_field(const ddprun_dataset_plugin& table, const ddprun_dataset_field& given, const std::string& which) {
  if (given.type > DDPRUN_ELEMENT_INT64) {
    refuse(table, which + " has the element type " + std::to_string(given.type) + ", which this ddprun does not know");
  }
  if (given.dimensions > kMostDimensions) {
    refuse(table, which + " has " + std::to_string(given.dimensions) + " dimensions");
  }
  if (given.dimensions > 0 && given.shape == nullptr) refuse(table, "the shape of " + which + " is null");
  Field field{{}, static_cast<ElementType>(given.type)};
  int64_t elements = 1;
  for (uint32_t i = 0; i < given.dimensions; ++i) {
    const int64_t extent = given.shape[i];
    if (extent < 1 || extent > kMostElements / elements) {
      refuse(table, which + " has an extent of " + std::to_string(extent));
    }
    elements *= extent;
    field.shape.push_back(extent);
  }
  return field;
}

std::vector<std::string> checked_classes(const ddprun_dataset_plugin& table, const ddprun_dataset_info& info) {
  if (info.class_count > kMostClasses) refuse(table, std::to_string(info.class_count) + " classes");
  if (info.class_count > 0 && info.classes == nullptr) refuse(table, "classes is null");
  std::vector<std::string> names;
  for (uint64_t i = 0; i < info.class_count; ++i) {
    if (info.classes[i] == nullptr) refuse(table, "the name of class " + std::to_string(i) + " is null");
    names.push_back(one_line(info.classes[i], kLongestClass));
  }
  return names;
}

using Handle = std::unique_ptr<ddprun_dataset, void (*)(ddprun_dataset*)>;

class PluginDataset final : public Dataset {
 public:
  PluginDataset(const ddprun_dataset_plugin& table, Handle split)
      : table_(table), split_(std::move(split)), where_(plugin::described(table) + ": ") {
    ddprun_dataset_info info{};
    info.struct_size = sizeof info;
    plugin::call_plugin(where_, [&] { table.describe(split_.get(), &info); });
    if (info.size < 1) refuse(table, "a split of " + std::to_string(info.size) + " samples");
    size_ = info.size;
    input_ = checked_field(table, info.input, "the input");
    target_ = checked_field(table, info.target, "the target");
    classes_ = checked_classes(table, info);
    target_is_class_ = target_.shape.empty() && target_.type == ElementType::int64;
    if (target_is_class_ && classes_.empty()) refuse(table, "the target is a class, but there are no classes");
    if (info.vocabulary > kMostElements) refuse(table, "a vocabulary of " + std::to_string(info.vocabulary));
    vocabulary_ = static_cast<int64_t>(info.vocabulary);
    if (vocabulary_ > 0 && input_.type != ElementType::int64) refuse(table, "tokens that are not int64");
  }

  int64_t size() const override { return size_; }
  const Field& input() const override { return input_; }
  const Field& target() const override { return target_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  int64_t vocabulary() const override { return vocabulary_; }

  void fetch(std::span<const int64_t> indices, int64_t epoch, void* inputs, void* targets) const override {
    ddprun_dataset_error error{};
    error.struct_size = sizeof error;
    const int32_t status = plugin::call_plugin(where_, [&] {
      return table_.fetch(split_.get(), indices.data(), indices.size(), epoch, inputs, targets, &error);
    });
    throw_unless_ok(table_, status, error);
    const auto classes = static_cast<int64_t>(classes_.size());
    if (target_is_class_) check_below(classes, indices, targets, 1, " is of class ", "classes");
    if (vocabulary_ > 0) check_below(vocabulary_, indices, inputs, input_.elements(), " has the token ", "tokens");
  }

 private:
  // A model uses these numbers as indices, so an invalid one would read out of bounds.
  void check_below(int64_t count, std::span<const int64_t> indices, const void* numbers, std::size_t of_sample,
                   const char* has, const char* what) const {
    const std::span all(static_cast<const int64_t*>(numbers), indices.size() * of_sample);
    const auto wrong = std::ranges::find_if(all, [&](int64_t number) { return number < 0 || number >= count; });
    if (wrong == all.end()) return;
    const int64_t sample = indices[static_cast<std::size_t>(wrong - all.begin()) / of_sample];
    refuse(table_, "sample " + std::to_string(sample) + has + std::to_string(*wrong) + ", but the " + what +
                       " are 0 to " + std::to_string(count - 1));
  }

  const ddprun_dataset_plugin& table_;
  const Handle split_;
  const std::string where_;
  int64_t size_ = 0;
  Field input_;
  Field target_;
  std::vector<std::string> classes_;
  int64_t vocabulary_ = 0;
  bool target_is_class_ = false;
};

bool same(const Field& a, const Field& b) {
  return a.shape == b.shape && a.type == b.type;
}

// Of the training and the test split.
std::pair<Handle, Handle> open_handles(const ddprun_dataset_plugin& table, const DatasetContext& context) {
  for (const OptionError& wrong : plugin::option_errors(table, context.options)) {
    throw DatasetError("options." + wrong.name, wrong.reason);
  }
  std::vector<ddprun_dataset_option> options;
  for (const auto& [key, value] : context.options) options.push_back({key.c_str(), value.c_str()});
  const ddprun_dataset_request request{sizeof request, static_cast<uint32_t>(options.size()), context.root.c_str(),
                                       options.data(), context.seed};
  ddprun_dataset* train = nullptr;
  ddprun_dataset* test = nullptr;
  ddprun_dataset_error error{};
  error.struct_size = sizeof error;
  const int32_t status =
      plugin::call_plugin(plugin::described(table) + ": ", [&] { return table.open(&request, &train, &test, &error); });
  const bool one_for_both = train != nullptr && train == test;
  std::pair handles(Handle(train, table.close), Handle(one_for_both ? nullptr : test, table.close));
  throw_unless_ok(table, status, error);
  if (train == nullptr) refuse(table, "opened without a training split");
  if (one_for_both) refuse(table, "gave one split as both training and test split");
  return handles;
}

}  // namespace

Splits open_splits(const ddprun_dataset_plugin& table, const DatasetContext& context) {
  auto [train, test] = open_handles(table, context);
  Splits splits{std::make_unique<PluginDataset>(table, std::move(train)), nullptr};
  if (test == nullptr) return splits;
  splits.test = std::make_unique<PluginDataset>(table, std::move(test));
  if (!same(splits.train->input(), splits.test->input()) || !same(splits.train->target(), splits.test->target())) {
    refuse(table, "its training and test samples differ in shape or type");
  }
  if (splits.train->classes() != splits.test->classes()) refuse(table, "its training and test classes differ");
  return splits;
}

}  // namespace ddprun::data
