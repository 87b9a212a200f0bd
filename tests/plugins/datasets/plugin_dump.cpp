// plugin_dump PLUGIN ROOT [KEY=VALUE...]: opens a data set plugin, given by its path, and prints both splits as JSON,
//   {"train": {"classes": [...], "shape": [...], "inputs": [[...], ...], "targets": [[...], ...]}, "test": ... or null}
// An error goes to stderr, as "key: reason", and the exit code is 2.
#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/datasets.hpp"
#include "plugin/registry.hpp"

using namespace ddprun;

namespace {

template <class Element>
nlohmann::json numbers(const std::vector<std::byte>& bytes) {
  const auto* const first = reinterpret_cast<const Element*>(bytes.data());
  return std::vector<Element>(first, first + bytes.size() / sizeof(Element));
}

nlohmann::json numbers(const Field& field, const std::vector<std::byte>& bytes) {
  return field.type == ElementType::float32 ? numbers<float>(bytes) : numbers<int64_t>(bytes);
}

nlohmann::json dump(const Dataset* dataset) {
  if (dataset == nullptr) return nullptr;
  nlohmann::json split = {{"classes", dataset->classes()}, {"shape", dataset->input().shape}};
  for (int64_t i = 0; i < dataset->size(); ++i) {
    std::vector<std::byte> input(dataset->input().bytes()), target(dataset->target().bytes());
    dataset->fetch({&i, 1}, 0, input.data(), target.data());
    split["inputs"].push_back(numbers(dataset->input(), input));
    split["targets"].push_back(numbers(dataset->target(), target));
  }
  return split;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    data::DataOptions wanted{words.at(0), {words.at(1), {}, 0}};
    for (std::size_t i = 2; i < words.size(); ++i) {
      const std::size_t equals = words[i].find('=');
      wanted.context.options[words[i].substr(0, equals)] = words[i].substr(equals + 1);
    }
    const Splits splits = data::open_dataset(wanted, plugin::Registry({}));
    std::cout << nlohmann::json{{"train", dump(splits.train.get())}, {"test", dump(splits.test.get())}} << "\n";
  } catch (const data::DatasetError& error) {
    std::fprintf(stderr, "%s: %s\n", error.key().c_str(), error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
