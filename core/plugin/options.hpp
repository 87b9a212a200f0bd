// What a plugin declares about its options, and the errors of the options that a user gives it.
#pragma once

#include <concepts>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.h"
#include "ddprun/plugin/dataset_entry.h"
#include "ddprun/plugin/model_entry.h"
#include "ddprun/plugin/options.hpp"

namespace ddprun::plugin {

using DeclaredOptions = std::vector<ddprun_option_spec>;

// The declared options, read by the struct_size of each; nothing if the plugin declares none. The gate has checked
// them.
std::optional<DeclaredOptions> option_specs(const ddprun_option_spec* first, uint32_t count);

template <class Table>
std::optional<DeclaredOptions> option_specs(const Table& table) {
  if (table.struct_size < offsetof(Table, option_count) + sizeof table.option_count) return std::nullopt;
  return option_specs(table.options, table.option_count);
}

// `backend "gloo"`, `model "linear"`, `data set "mnist"`.
template <class Table>
std::string described(const Table& table) {
  constexpr bool is_comm = std::same_as<Table, ddprun_comm_plugin>, is_model = std::same_as<Table, ddprun_model_plugin>;
  return std::string(is_comm ? "backend" : is_model ? "model" : "data set") + " \"" + table.name + '"';
}

// The options that the declaration does not allow; none if the plugin declares nothing.
std::vector<OptionError> option_errors(const auto& table, const std::map<std::string, std::string>& given) {
  const auto specs = option_specs(table);
  return specs ? ddprun::option_errors(described(table), *specs, given) : std::vector<OptionError>{};
}

// Why a declaration cannot be right ("its default_value: ..."); empty if it can.
std::string spec_error(const ddprun_option_spec& spec);

}  // namespace ddprun::plugin
