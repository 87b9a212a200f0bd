#include "plugin/options.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace ddprun::plugin {
namespace {

constexpr std::array<const char*, DDPRUN_OPTION_TYPE_COUNT> kTypes = {"text", "choice",   "integer", "real",
                                                                      "flag", "duration", "size"};

bool has_range(const ddprun_option_spec& spec) {
  return spec.type != DDPRUN_OPTION_TEXT && spec.type != DDPRUN_OPTION_CHOICE && spec.type != DDPRUN_OPTION_FLAG;
}

bool is_empty(const char* text) {
  return text == nullptr || *text == '\0';
}

// Of least, most or default_value.
std::string text_error(const ddprun_option_spec& spec, const char* field, const char* text) {
  if (text == nullptr) return "";
  const std::string error = value_error(spec, text);
  return error.empty() ? "" : std::string("its ") + field + " is \"" + text + "\": " + error;
}

std::string limit_error(ddprun_option_spec spec) {
  if (!has_range(spec)) return spec.least == nullptr && spec.most == nullptr ? "" : "it has a range, but no number";
  const ddprun_option_spec whole = spec;
  spec.list = 0;
  spec.least = spec.most = nullptr;
  if (std::string error = text_error(spec, "least", whole.least); !error.empty()) return error;
  if (std::string error = text_error(spec, "most", whole.most); !error.empty()) return error;
  spec.least = whole.least;
  return text_error(spec, "most", whole.most);
}

std::string choices_error(const ddprun_option_spec& spec) {
  if (spec.type != DDPRUN_OPTION_CHOICE) return spec.choices == nullptr ? "" : "it has choices, but is no CHOICE";
  if (spec.choices == nullptr) return "its choices is null";
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

std::string described(const ddprun_comm_plugin& table) {
  return std::string("backend \"") + table.name + '"';
}
std::string described(const ddprun_model_plugin& table) {
  return std::string("model \"") + table.name + '"';
}
std::string described(const ddprun_dataset_plugin& table) {
  return std::string("data set \"") + table.name + '"';
}

std::string spec_error(const ddprun_option_spec& spec) {
  if (is_empty(spec.meaning)) return "its meaning is null or empty";
  if (spec.type < 0 || spec.type >= DDPRUN_OPTION_TYPE_COUNT) {
    return "it has the type " + std::to_string(spec.type) + ", which this ddprun does not know";
  }
  if (std::string error = choices_error(spec); !error.empty()) return error;
  if (std::string error = limit_error(spec); !error.empty()) return error;
  return text_error(spec, "default_value", spec.default_value);
}

std::string type_text(const ddprun_option_spec& spec) {
  return std::string(kTypes.at(static_cast<std::size_t>(spec.type))) + (spec.list != 0 ? ", ..." : "");
}

std::string range_text(const ddprun_option_spec& spec) {
  if (spec.type == DDPRUN_OPTION_CHOICE) {
    std::string text;
    for (const std::string& choice : parse_list(spec.choices, '|')) text += (text.empty() ? "" : ", ") + choice;
    return text;
  }
  if (spec.least != nullptr && spec.most != nullptr) return std::string(spec.least) + " to " + spec.most;
  if (spec.least != nullptr) return std::string("at least ") + spec.least;
  return spec.most != nullptr ? std::string("at most ") + spec.most : "";
}

}  // namespace ddprun::plugin
