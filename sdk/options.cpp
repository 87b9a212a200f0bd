#include "ddprun/plugin/options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "ddprun/plugin/words.hpp"

namespace ddprun {
namespace {

template <class T>
std::optional<T> parse_all(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// Where the number ends and the unit begins.
std::size_t unit_at(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789."), text.size());
}

// The text, without the spaces around it.
std::string trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return std::string(text.substr(0, text.find_last_not_of(" \t") + 1));
}

std::vector<std::string> choices_of(const ddprun_option_spec& spec) {
  return spec.choices == nullptr ? std::vector<std::string>{} : parse_list(spec.choices, '|');
}

std::optional<double> parse_part(std::string_view text) {
  if (const auto count = parse_integer(text)) return static_cast<double>(*count);
  const auto fraction = parse_real(text);
  return fraction > 0 && fraction < 1 ? fraction : std::nullopt;
}

template <auto parse>
bool is_within(const ddprun_option_spec& spec, std::string_view text) {
  const auto value = parse(text);
  const bool above = (spec.open & DDPRUN_OPTION_ABOVE_LEAST) != 0, below = (spec.open & DDPRUN_OPTION_BELOW_MOST) != 0;
  if (!value) return false;
  if (spec.least != nullptr && (above ? value <= parse(spec.least) : value < parse(spec.least))) return false;
  return spec.most == nullptr || (below ? value < parse(spec.most) : value <= parse(spec.most));
}

// How errors and documentation call a value of a type, and which values it has.
struct Type {
  const char* one;
  const char* several;
  const char* example;
  bool (*allows)(const ddprun_option_spec& spec, std::string_view text);  // which is not one of the choices
};

constexpr std::array<Type, DDPRUN_OPTION_TYPE_COUNT> kTypes = {{
    {"a string", "strings", "", [](const auto&, auto) { return true; }},
    {"", "", "", [](const auto&, auto) { return false; }},  // the choices say it
    {"an integer", "integers", "", is_within<parse_integer>},
    {"a number", "numbers", "", is_within<parse_real>},
    {"true or false", "true or false", "", is_within<parse_flag>},
    {"a duration", "durations", ", such as \"30s\"", is_within<parse_duration>},
    {"a size", "sizes", ", such as \"64KiB\"", is_within<parse_size>},
    {"a string of at least one character", "strings", "", [](const auto&, auto text) { return !text.empty(); }},
    {"a fraction above 0 and below 1, or an integer", "fractions or integers", "", is_within<parse_part>},
}};

// " from 0 to below 1", " above 0 and at most 8"
std::string range_text(const ddprun_option_spec& spec) {
  const bool above = (spec.open & DDPRUN_OPTION_ABOVE_LEAST) != 0, below = (spec.open & DDPRUN_OPTION_BELOW_MOST) != 0;
  const bool from = spec.least != nullptr && spec.most != nullptr && !above;
  std::string text;
  if (spec.least != nullptr) text = (above ? " above " : from ? " from " : " of at least ") + std::string(spec.least);
  if (spec.most == nullptr) return text;
  text += from ? " to" : !text.empty() ? " and" : below ? "" : " of";
  return text + (below ? " below " : from ? " " : " at most ") + spec.most;
}

}  // namespace

std::optional<int64_t> parse_integer(std::string_view text) {
  return parse_all<int64_t>(text);
}

std::optional<double> parse_real(std::string_view text) {
  const auto value = parse_all<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<bool> parse_flag(std::string_view text) {
  if (text != "true" && text != "false") return std::nullopt;
  return text == "true";
}

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"ns", 1},  {"us", 1e3}, {"ms", 1e6},
                                                            {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
  const std::size_t at = unit_at(text);
  const auto number = parse_real(text.substr(0, at));
  for (const auto& [unit, nanoseconds] : kUnits) {
    if (unit != text.substr(at)) continue;
    const double value = number.value_or(-1) * nanoseconds;
    if (!(value >= 0 && value < 9.2e18)) return std::nullopt;  // 292 years fill 64 bits
    return std::chrono::nanoseconds(std::llround(value));
  }
  return std::nullopt;
}

std::optional<uint64_t> parse_size(std::string_view text) {
  constexpr std::pair<std::string_view, int> kUnits[] = {{"", 0},     {"B", 0},    {"KiB", 10},
                                                         {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  const std::size_t at = unit_at(text);
  const auto number = parse_all<uint64_t>(text.substr(0, at));
  for (const auto& [unit, shift] : kUnits) {
    if (unit != text.substr(at)) continue;
    if (!number || *number > std::numeric_limits<uint64_t>::max() >> shift) return std::nullopt;
    return *number << shift;
  }
  return std::nullopt;
}

std::vector<std::string> parse_list(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(trimmed(text.substr(at, end - at)));
    at = end + 1;
  }
  return parts;
}

std::string expectation(const ddprun_option_spec& spec) {
  const Type& type = kTypes.at(static_cast<std::size_t>(spec.type));
  const std::string count = spec.list > 1 ? std::to_string(spec.list) + ' ' : "";
  const std::string what = (spec.list == 0 ? type.one : "a list of " + count + type.several) + range_text(spec);
  if (spec.choices == nullptr) return what + type.example;
  return what + type.example + (spec.type == DDPRUN_OPTION_CHOICE ? "" : " or ") + quoted_list(choices_of(spec));
}

std::string value_error(const ddprun_option_spec& spec, std::string_view value) {
  const auto& allows = kTypes.at(static_cast<std::size_t>(spec.type)).allows;
  const auto choices = choices_of(spec);
  const auto parts = spec.list == 0 ? std::vector{std::string(value)} : parse_list(value);
  if (spec.list > 1 && parts.size() != static_cast<std::size_t>(spec.list)) return "expected " + expectation(spec);
  for (const std::string& part : parts) {
    if (spec.list != 0 && part.empty()) return "expected one value, or several with commas between them";
    if (std::find(choices.begin(), choices.end(), part) != choices.end() || allows(spec, part)) continue;
    return "expected " + expectation(spec) + did_you_mean(part, choices);
  }
  return "";
}

std::vector<OptionError> option_errors(const std::string& owner, OptionSpecs specs,
                                       const std::map<std::string, std::string>& given) {
  std::vector<OptionError> errors;
  for (const auto& [name, value] : given) {
    const auto spec =
        std::find_if(specs.begin(), specs.end(), [&name = name](const auto& one) { return one.name == name; });
    std::string reason;
    if (spec != specs.end()) {
      reason = value_error(*spec, value);
    } else if (specs.empty()) {
      reason = owner + " has no options; remove the key";
    } else {
      std::vector<std::string> names;
      for (const ddprun_option_spec& one : specs) names.emplace_back(one.name);
      reason = owner + " has no such option; " + expected_one_of(name, names);
    }
    if (!reason.empty()) errors.push_back({name, std::move(reason)});
  }
  return errors;
}

Options::Options(const std::string& owner, OptionSpecs specs, std::map<std::string, std::string> given)
    : specs_(specs.begin(), specs.end()), given_(std::move(given)) {
  const auto errors = option_errors(owner, specs, given_);
  if (!errors.empty()) throw InvalidOption(errors.front());
}

std::optional<std::string> Options::value(const std::string& name, std::initializer_list<int32_t> types,
                                          bool list) const {
  for (const ddprun_option_spec& spec : specs_) {
    if (spec.name != name || (spec.list != 0) != list) continue;
    if (std::find(types.begin(), types.end(), spec.type) == types.end()) continue;
    if (const auto found = given_.find(name); found != given_.end()) return found->second;
    if (spec.default_value != nullptr) return spec.default_value;
    return std::nullopt;
  }
  throw std::logic_error("the plugin reads the option \"" + name + "\", which it has not declared with this type");
}

std::string Options::text(const std::string& name, const std::string& otherwise) const {
  return value(name, {DDPRUN_OPTION_TEXT, DDPRUN_OPTION_NAME, DDPRUN_OPTION_CHOICE}).value_or(otherwise);
}

int64_t Options::integer(const std::string& name, int64_t otherwise) const {
  return parse_integer(value(name, {DDPRUN_OPTION_INTEGER}).value_or("")).value_or(otherwise);
}

double Options::real(const std::string& name, double otherwise) const {
  return parse_real(value(name, {DDPRUN_OPTION_REAL, DDPRUN_OPTION_PART}).value_or("")).value_or(otherwise);
}

bool Options::flag(const std::string& name, bool otherwise) const {
  return parse_flag(value(name, {DDPRUN_OPTION_FLAG}).value_or("")).value_or(otherwise);
}

std::chrono::nanoseconds Options::duration(const std::string& name, std::chrono::nanoseconds otherwise) const {
  return parse_duration(value(name, {DDPRUN_OPTION_DURATION}).value_or("")).value_or(otherwise);
}

uint64_t Options::size(const std::string& name, uint64_t otherwise) const {
  return parse_size(value(name, {DDPRUN_OPTION_SIZE}).value_or("")).value_or(otherwise);
}

std::vector<std::string> Options::texts(const std::string& name) const {
  const auto text = value(name, {DDPRUN_OPTION_TEXT, DDPRUN_OPTION_NAME, DDPRUN_OPTION_CHOICE}, true);
  return text ? parse_list(*text) : std::vector<std::string>{};
}

std::vector<double> Options::reals(const std::string& name) const {
  std::vector<double> numbers;
  const auto text = value(name, {DDPRUN_OPTION_REAL, DDPRUN_OPTION_PART}, true);
  if (!text) return numbers;
  for (const std::string& part : parse_list(*text)) numbers.push_back(parse_real(part).value());
  return numbers;
}

}  // namespace ddprun
