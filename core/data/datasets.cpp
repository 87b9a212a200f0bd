#include "data/datasets.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "data/builtin.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun::data {
namespace {

template <Splits (*open)(const DatasetContext&)>
ddprun_dataset_plugin table(const char* name, const char* summary, OptionSpecs options) {
  return detail::dataset_table<open>(name, version(), summary, options);
}

// Null for a name that is not built in.
const ddprun_dataset_plugin* builtin(const std::string& name) {
  const auto& all = builtin_datasets();
  const auto found = std::ranges::find(all, name, &ddprun_dataset_plugin::name);
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> names_of_all(const plugin::Registry& registry) {
  std::vector<std::string> names;
  for (const ddprun_dataset_plugin& table : builtin_datasets()) names.emplace_back(table.name);
  for (const std::string& name : registry.names(plugin::Kind::dataset)) {
    if (builtin(name) == nullptr) names.push_back(name);
  }
  return names;
}

std::string name_taken(const std::string& path, const std::string& name) {
  return "dataset plugin " + path + ": wrong name: \"" + name +
         "\" is a data set that comes with ddprun; rename the plugin";
}

}  // namespace

const std::vector<ddprun_dataset_plugin>& builtin_datasets() {
  static const std::vector<ddprun_dataset_plugin> all = {
      table<open_linear>("linear", "a straight line with noise, computed", kLinearOptions),
      table<open_mnist>("mnist", "handwritten digits, from IDX files", kMnistOptions),
      table<open_fashion_mnist>("fashion-mnist", "pictures of clothes, from IDX files", kMnistOptions),
      table<open_cifar10>("cifar10", "small photographs of ten classes, in the binary form", kCifar10Options),
      table<open_idx>("idx", "images and labels of one's own, from IDX files", kIdxOptions),
      table<open_synthetic>("synthetic", "noise in the shape of images, computed", kSyntheticOptions),
  };
  return all;
}

std::string default_root(const std::string& name) {
  return name == "mnist" ? kMnistRoot : name == "cifar10" ? kCifar10Root : "";
}

plugin::DatasetPlugin find_dataset(const std::string& name, const plugin::Registry& registry) {
  if (const auto* const table = builtin(name)) return {"", table};
  const bool is_path = name.find('/') != std::string::npos;
  if (!is_path && std::ranges::count(registry.names(plugin::Kind::dataset), name) == 0) {
    throw DatasetError(
        "name", expected_one_of(name, names_of_all(registry)) + "; plugins are looked for in " + registry.places());
  }
  const plugin::DatasetPlugin found = registry.dataset(name);
  if (builtin(found.table->name) != nullptr) {
    throw Error(ExitCode::plugin, name_taken(found.path, found.table->name));
  }
  return found;
}

std::vector<plugin::Listed> list_plugins(const plugin::Registry& registry) {
  auto listed = registry.list();
  for (plugin::Listed& one : listed) {
    const auto* const table = std::get_if<const ddprun_dataset_plugin*>(&one.content);
    if (table != nullptr && builtin((*table)->name) != nullptr) one.content = name_taken(one.path, (*table)->name);
  }
  return listed;
}

Splits open_dataset(const DataOptions& data, const plugin::Registry& registry) {
  return open_splits(*find_dataset(data.name, registry).table, data.context);
}

}  // namespace ddprun::data
