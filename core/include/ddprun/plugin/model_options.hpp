// ddprun/plugin/model_options.hpp: reads `model.options`. What it refuses it refuses with one line that names the key and what
// would be right, thrown as std::invalid_argument; the host puts the place in the config before it.
#pragma once

#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ddprun {

class ModelOptions {
 public:
  // `model` is the plugin's name, `known` every key that it takes. Throws for the first key that is not among them.
  ModelOptions(const std::map<std::string, std::string>& options, std::string_view model,
               std::initializer_list<std::string_view> known)
      : options_(options) {
    for (const auto& [key, value] : options) {
      bool found = false;
      for (const std::string_view name : known) found = found || name == key;
      if (!found) throw std::invalid_argument("model.options." + key + ": " + std::string(model) + takes(known));
    }
  }

  // A whole number in [least, most]; `otherwise` when the key is not given.
  int64_t integer(const std::string& key, int64_t otherwise, int64_t least, int64_t most) const {
    const auto found = options_.find(key);
    if (found == options_.end()) return otherwise;
    const std::string& text = found->second;
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
      throw std::invalid_argument("model.options." + key + " = \"" + text + "\": expected a whole number from " +
                                  std::to_string(least) + " to " + std::to_string(most));
    }
    return value;
  }

  // One of `words`; `otherwise`, which is among them, when the key is not given.
  std::string choice(const std::string& key, const std::string& otherwise,
                     std::initializer_list<std::string_view> words) const {
    const auto found = options_.find(key);
    if (found == options_.end()) return otherwise;
    for (const std::string_view word : words) {
      if (word == found->second) return found->second;
    }
    throw std::invalid_argument("model.options." + key + " = \"" + found->second + "\": expected " + one_of(words));
  }

 private:
  // `"a", "b" or "c"`
  static std::string one_of(std::initializer_list<std::string_view> words) {
    std::string text;
    for (const auto* word = words.begin(); word != words.end(); ++word) {
      if (word != words.begin()) text += word + 1 == words.end() ? " or " : ", ";
      text.append("\"").append(*word).append("\"");
    }
    return text;
  }

  static std::string takes(std::initializer_list<std::string_view> known) {
    if (known.size() == 0) return " has no options; remove the key";
    std::string text = " has no such option; it has ";
    const char* before = "";
    for (const std::string_view name : known) {
      text.append(before).append(name);
      before = ", ";
    }
    return text;
  }

  std::map<std::string, std::string> options_;
};

}  // namespace ddprun
