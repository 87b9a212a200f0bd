#include <cstdio>
#include <optional>
#include <type_traits>

#include "cli/commands.hpp"
#include "cli/console/table.hpp"
#include "comm/plugin_backend.hpp"
#include "data/datasets.hpp"
#include "ddprun/plugin/words.hpp"
#include "plugin/options.hpp"

namespace ddprun::app {
namespace {

std::string describe(const Capabilities& of) {
  std::string text;
  for (const auto& [has, word] : {std::pair{of.host, "host"},
                                  {of.cuda, "cuda"},
                                  {of.blocking, "blocking"},
                                  {of.stream_ordered, "stream-ordered"},
                                  {of.alloc, "alloc"},
                                  {of.reduce_scatter, "reduce_scatter"},
                                  {of.exchange, "exchange"}}) {
    if (has) text.append(text.empty() ? "" : " ").append(word);
  }
  text += "; algorithms auto";
  for (const AlgorithmInfo& algorithm : of.algorithms) text.append(" ").append(algorithm.name);
  return text;
}

// The table row of a plugin, or of a file that is hidden by another or was rejected.
std::vector<std::string> row(const plugin::Listed& listed) {
  const std::string kind = plugin::name_of(listed.kind);
  if (!listed.hidden_by.empty()) return {kind, listed.name, "-", "-", "hidden by " + listed.hidden_by, listed.path};
  if (const auto* refusal = std::get_if<std::string>(&listed.content)) {
    return {kind, listed.name, "-", "-", "refused: " + *refusal, listed.path};
  }
  if (const auto* comm = std::get_if<const ddprun_comm_plugin*>(&listed.content)) {
    return {kind,       (*comm)->name, (*comm)->version, (*comm)->library, describe(comm::capabilities_of(**comm)),
            listed.path};
  }
  if (const auto* model = std::get_if<const ddprun_model_plugin*>(&listed.content)) {
    return {kind, (*model)->name, (*model)->version, std::string("torch ") + (*model)->torch_version, "", listed.path};
  }
  const auto& dataset = *std::get<const ddprun_dataset_plugin*>(listed.content);
  return {kind, dataset.name, dataset.version, "", dataset.summary, listed.path};
}

// What the plugin declares about its options; empty for a refused or hidden one.
std::string describe_options(const plugin::Listed& listed) {
  if (std::holds_alternative<std::string>(listed.content)) return "";
  const auto options = std::visit(
      [](const auto& table) -> std::optional<plugin::DeclaredOptions> {
        if constexpr (std::is_pointer_v<std::decay_t<decltype(table)>>) return plugin::option_specs(*table);
        return std::nullopt;
      },
      listed.content);
  const std::string table_of = listed.kind == plugin::Kind::dataset ? "data" : plugin::name_of(listed.kind);
  const std::string head = "\n" + table_of + ".options of " + listed.name + ":";
  if (!options) return head + " not declared\n";
  if (options->empty()) return head + " none\n";
  console::Table table({{"name"}, {"value"}, {"default"}, {"meaning"}});
  for (const ddprun_option_spec& spec : *options) {
    table.row({printable(spec.name), expectation(spec), spec.default_value == nullptr ? "-" : spec.default_value,
               printable(spec.meaning)});
  }
  return head + "\n" + table.text(2);
}

}  // namespace

ExitCode plugins(const Arguments& arguments) {
  const auto registry = plugin::Registry::standard(arguments.plugin_paths);
  console::Table table({{"kind"}, {"name"}, {"version"}, {"library"}, {"about"}, {"path"}});
  auto all = data::list_plugins(registry);
  for (const ddprun_dataset_plugin& dataset : data::builtin_datasets()) {
    all.push_back({plugin::Kind::dataset, dataset.name, "built in", "", &dataset});
  }
  for (const plugin::Listed& listed : all) table.row(row(listed));
  std::fputs((table.text() + "\nlooked in " + registry.places() + "\n").c_str(), stdout);
  for (const plugin::Listed& listed : all) {
    if (arguments.verbose) std::fputs(describe_options(listed).c_str(), stdout);
  }
  return ExitCode::ok;
}

}  // namespace ddprun::app
