#include "plugin/options.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ddprun::plugin {
namespace {

bool is_number(const ddprun_option_spec& spec) {
  return spec.type == DDPRUN_OPTION_INTEGER || spec.type == DDPRUN_OPTION_REAL || spec.type == DDPRUN_OPTION_DURATION ||
         spec.type == DDPRUN_OPTION_SIZE || spec.type == DDPRUN_OPTION_PART;
}

// Of least, most or default_value.
std::string text_error(const ddprun_option_spec& spec, const char* field, const char* text) {
  if (text == nullptr) return "";
  const std::string error = value_error(spec, text);
  return error.empty() ? "" : std::string("its ") + field + " is \"" + text + "\": " + error;
}

std::string limit_error(ddprun_option_spec spec) {
  if (!is_number(spec)) return spec.least == nullptr && spec.most == nullptr ? "" : "it has a range, but no number";
  const char* const least = std::exchange(spec.least, nullptr);
  const char* const most = std::exchange(spec.most, nullptr);
  spec.choices = nullptr;
  spec.list = 0;
  if (std::string error = text_error(spec, "least", least); !error.empty()) return error;
  spec.least = least;
  return text_error(spec, "most", most);
}

std::string choices_error(const ddprun_option_spec& spec) {
  if (spec.choices == nullptr) return spec.type == DDPRUN_OPTION_CHOICE ? "its choices is null" : "";
  const bool may_have_words = is_number(spec) && spec.list == 0;
  if (spec.type != DDPRUN_OPTION_CHOICE && !may_have_words) return "it has choices, but is no CHOICE and no number";
  const auto choices = parse_list(spec.choices, '|');
  const bool has_empty = std::find(choices.begin(), choices.end(), "") != choices.end();
  return has_empty ? "one of its choices is empty" : "";
}

}  // namespace

std::optional<DeclaredOptions> option_specs(const ddprun_option_spec* first, uint32_t count) {
  if (first == nullptr) return std::nullopt;
  DeclaredOptions specs;
  const auto* at = reinterpret_cast<const std::byte*>(first);
  for (uint32_t i = 0; i < count; ++i) {
    ddprun_option_spec spec{};
    const auto size = reinterpret_cast<const ddprun_option_spec*>(at)->struct_size;
    std::memcpy(&spec, at, std::min<std::size_t>(size, sizeof spec));
    specs.push_back(spec);
    at += size;
  }
  return specs;
}

std::string spec_error(const ddprun_option_spec& spec) {
  if (spec.meaning == nullptr || *spec.meaning == '\0') return "its meaning is null or empty";
  if (spec.type < 0 || spec.type >= DDPRUN_OPTION_TYPE_COUNT) {
    return "it has the type " + std::to_string(spec.type) + ", which this ddprun does not know";
  }
  if (std::string error = choices_error(spec); !error.empty()) return error;
  if (std::string error = limit_error(spec); !error.empty()) return error;
  return text_error(spec, "default_value", spec.default_value);
}

}  // namespace ddprun::plugin
