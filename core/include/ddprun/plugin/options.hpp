// ddprun/plugin/options.hpp: the options of a plugin of any kind: how it declares them (option_spec.h), and how it
// reads them. Torch-free. docs/writing-a-backend.md has an example.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ddprun/plugin/option_spec.h"

namespace ddprun {

// Declarations. Every text is one that lives as long as the plugin; null: none, see ddprun_option_spec.

using OptionSpecs = std::span<const ddprun_option_spec>;

// Declares that the plugin takes no options.
inline constexpr ddprun_option_spec kNoSpec[1] = {};
inline constexpr OptionSpecs kNoOptions{kNoSpec, 0};
// Declares nothing: the plugin itself refuses the options that it does not know.
inline constexpr OptionSpecs kUndeclaredOptions{};

namespace detail {
constexpr ddprun_option_spec option(int32_t type, const char* name, const char* default_value, const char* meaning,
                                    const char* least = nullptr, const char* most = nullptr,
                                    const char* choices = nullptr) {
  return {sizeof(ddprun_option_spec), type, 0, 0, name, meaning, default_value, least, most, choices};
}
}  // namespace detail

constexpr ddprun_option_spec text_option(const char* name, const char* default_value, const char* meaning) {
  return detail::option(DDPRUN_OPTION_TEXT, name, default_value, meaning);
}
constexpr ddprun_option_spec name_option(const char* name, const char* default_value, const char* meaning) {
  return detail::option(DDPRUN_OPTION_NAME, name, default_value, meaning);
}
constexpr ddprun_option_spec flag_option(const char* name, const char* default_value, const char* meaning) {
  return detail::option(DDPRUN_OPTION_FLAG, name, default_value, meaning);
}
// choices: "small|large"
constexpr ddprun_option_spec choice_option(const char* name, const char* default_value, const char* choices,
                                           const char* meaning) {
  return detail::option(DDPRUN_OPTION_CHOICE, name, default_value, meaning, nullptr, nullptr, choices);
}
constexpr ddprun_option_spec integer_option(const char* name, const char* default_value, const char* least,
                                            const char* most, const char* meaning) {
  return detail::option(DDPRUN_OPTION_INTEGER, name, default_value, meaning, least, most);
}
constexpr ddprun_option_spec real_option(const char* name, const char* default_value, const char* least,
                                         const char* most, const char* meaning) {
  return detail::option(DDPRUN_OPTION_REAL, name, default_value, meaning, least, most);
}
constexpr ddprun_option_spec duration_option(const char* name, const char* default_value, const char* least,
                                             const char* most, const char* meaning) {
  return detail::option(DDPRUN_OPTION_DURATION, name, default_value, meaning, least, most);
}
constexpr ddprun_option_spec size_option(const char* name, const char* default_value, const char* least,
                                         const char* most, const char* meaning) {
  return detail::option(DDPRUN_OPTION_SIZE, name, default_value, meaning, least, most);
}
constexpr ddprun_option_spec part_option(const char* name, const char* default_value, const char* least,
                                         const char* most, const char* meaning) {
  return detail::option(DDPRUN_OPTION_PART, name, default_value, meaning, least, most);
}
// The same option with several values, and commas between them; with a `count` above 1, exactly so many.
constexpr ddprun_option_spec list_of(ddprun_option_spec spec, int32_t count = 1) {
  spec.list = count;
  return spec;
}
// The same number, but its least or its most is itself not allowed.
constexpr ddprun_option_spec above_least(ddprun_option_spec spec) {
  spec.open |= DDPRUN_OPTION_ABOVE_LEAST;
  return spec;
}
constexpr ddprun_option_spec below_most(ddprun_option_spec spec) {
  spec.open |= DDPRUN_OPTION_BELOW_MOST;
  return spec;
}
// The same number, or this word in its place: "auto".
constexpr ddprun_option_spec or_word(ddprun_option_spec spec, const char* word) {
  spec.choices = word;
  return spec;
}

// Parsers. Each takes the whole text, or returns nothing.

std::optional<int64_t> parse_integer(std::string_view text);
std::optional<double> parse_real(std::string_view text);  // finite
std::optional<bool> parse_flag(std::string_view text);
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);
std::optional<uint64_t> parse_size(std::string_view text);  // in bytes
// The parts between the separators, without the spaces around them.
std::vector<std::string> parse_list(std::string_view text, char separator = ',');

// An option that the declaration does not allow, and why: one line, without the option's name and value.
struct OptionError {
  std::string name;
  std::string reason;
};

// What the declaration allows, for errors and documentation: `an integer from 1 to 8 or "auto"`.
std::string expectation(const ddprun_option_spec& spec);

// Why the declaration does not allow this value: "expected " with the expectation; empty if it does.
std::string value_error(const ddprun_option_spec& spec, std::string_view value);

// The errors of all options, by name. `owner` is what takes the options: `backend "gloo"`.
std::vector<OptionError> option_errors(const std::string& owner, OptionSpecs specs,
                                       const std::map<std::string, std::string>& given);

// Thrown for the first error. what() is the reason.
class InvalidOption : public std::invalid_argument {
 public:
  explicit InvalidOption(OptionError error) : std::invalid_argument(error.reason), name_(std::move(error.name)) {}
  const std::string& name() const noexcept { return name_; }

 private:
  std::string name_;
};

// The options that a plugin was given, checked, with the declared defaults. The texts of the declarations outlive it.
// Const functions may be called from any thread.
class Options {
 public:
  // Throws InvalidOption for the first option that the declarations do not allow.
  Options(const std::string& owner, OptionSpecs specs, std::map<std::string, std::string> given);

  // Whether the config has the option.
  bool given(const std::string& name) const { return given_.contains(name); }

  // The value of an option of this type: that of the config, else the declared default; `otherwise` if there is none,
  // or if it is the word in place of a number. Throws std::logic_error for one that is not declared with this type.
  std::string text(const std::string& name, const std::string& otherwise = "") const;  // TEXT, NAME or CHOICE
  int64_t integer(const std::string& name, int64_t otherwise = 0) const;
  double real(const std::string& name, double otherwise = 0) const;  // REAL or PART
  bool flag(const std::string& name, bool otherwise = false) const;
  std::chrono::nanoseconds duration(const std::string& name, std::chrono::nanoseconds otherwise = {}) const;
  uint64_t size(const std::string& name, uint64_t otherwise = 0) const;  // in bytes
  // Of an option that is a list.
  std::vector<std::string> texts(const std::string& name) const;
  std::vector<double> reals(const std::string& name) const;

 private:
  std::optional<std::string> value(const std::string& name, std::initializer_list<int32_t> types,
                                   bool list = false) const;

  std::vector<ddprun_option_spec> specs_;
  std::map<std::string, std::string> given_;
};

}  // namespace ddprun
