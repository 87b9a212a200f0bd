#include "ddprun/plugin/options.hpp"

#include <algorithm>
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
  return std::min(text.find_last_of("0123456789.") + 1, text.size());
}

// The text, without the spaces around it.
std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

std::string range_text(const ddprun_option_spec& spec) {
  if (spec.least != nullptr && spec.most != nullptr) return std::string(" from ") + spec.least + " to " + spec.most;
  if (spec.least != nullptr) return std::string(" of at least ") + spec.least;
  if (spec.most != nullptr) return std::string(" of at most ") + spec.most;
  return "";
}

template <class T>
std::string number_error(const ddprun_option_spec& spec, std::string_view text,
                         std::optional<T> (*parse)(std::string_view), const char* what) {
  const auto within = [&](const T& value) {
    return (spec.least == nullptr || value >= *parse(spec.least)) &&
           (spec.most == nullptr || value <= *parse(spec.most));
  };
  const std::optional<T> value = parse(text);
  return value && within(*value) ? "" : "expected " + std::string(what) + range_text(spec);
}

std::string single_value_error(const ddprun_option_spec& spec, std::string_view text) {
  switch (spec.type) {
    case DDPRUN_OPTION_CHOICE: {
      const std::vector<std::string> choices = parse_list(spec.choices, '|');
      const bool found = std::find(choices.begin(), choices.end(), text) != choices.end();
      return found ? "" : expected_one_of(std::string(text), choices);
    }
    case DDPRUN_OPTION_INTEGER: return number_error(spec, text, parse_integer, "a whole number");
    case DDPRUN_OPTION_REAL: return number_error(spec, text, parse_real, "a number");
    case DDPRUN_OPTION_FLAG: return parse_flag(text) ? "" : "expected true or false";
    case DDPRUN_OPTION_DURATION:
      return number_error(spec, text, parse_duration, "a duration such as \"30s\" or \"250ms\"");
    case DDPRUN_OPTION_SIZE: return number_error(spec, text, parse_size, "a size such as \"64KiB\"");
    default: return "";
  }
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

std::string value_error(const ddprun_option_spec& spec, std::string_view value) {
  if (spec.list == 0) return single_value_error(spec, value);
  for (const std::string& part : parse_list(value)) {
    if (part.empty()) return "expected one value, or several with commas between them";
    if (std::string error = single_value_error(spec, part); !error.empty()) return error;
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
  return value(name, {DDPRUN_OPTION_TEXT, DDPRUN_OPTION_CHOICE}).value_or(otherwise);
}

int64_t Options::integer(const std::string& name, int64_t otherwise) const {
  const auto text = value(name, {DDPRUN_OPTION_INTEGER});
  return text ? parse_integer(*text).value() : otherwise;
}

double Options::real(const std::string& name, double otherwise) const {
  const auto text = value(name, {DDPRUN_OPTION_REAL});
  return text ? parse_real(*text).value() : otherwise;
}

bool Options::flag(const std::string& name, bool otherwise) const {
  const auto text = value(name, {DDPRUN_OPTION_FLAG});
  return text ? parse_flag(*text).value() : otherwise;
}

std::chrono::nanoseconds Options::duration(const std::string& name, std::chrono::nanoseconds otherwise) const {
  const auto text = value(name, {DDPRUN_OPTION_DURATION});
  return text ? parse_duration(*text).value() : otherwise;
}

uint64_t Options::size(const std::string& name, uint64_t otherwise) const {
  const auto text = value(name, {DDPRUN_OPTION_SIZE});
  return text ? parse_size(*text).value() : otherwise;
}

std::vector<std::string> Options::texts(const std::string& name) const {
  const auto text = value(name, {DDPRUN_OPTION_TEXT, DDPRUN_OPTION_CHOICE}, true);
  return text ? parse_list(*text) : std::vector<std::string>{};
}

std::vector<double> Options::reals(const std::string& name) const {
  std::vector<double> numbers;
  const auto text = value(name, {DDPRUN_OPTION_REAL}, true);
  if (!text) return numbers;
  for (const std::string& part : parse_list(*text)) numbers.push_back(parse_real(part).value());
  return numbers;
}

}  // namespace ddprun
