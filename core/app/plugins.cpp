#include <cstdio>

#include "app/commands.hpp"
#include "comm/plugin_backend.hpp"
#include "console/table.hpp"
#include "data/datasets.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun::app {
namespace {

std::string describe(const Capabilities& capabilities) {
  std::string text;
  const auto add = [&](bool has, const char* word) {
    if (has && !text.empty()) text += ' ';
    if (has) text += word;
  };
  add(capabilities.host, "host");
  add(capabilities.cuda, "cuda");
  add(capabilities.blocking, "blocking");
  add(capabilities.stream_ordered, "stream-ordered");
  add(capabilities.capture, "capture");
  add(capabilities.alloc, "alloc");
  text += "; algorithms auto";
  for (const AlgorithmInfo& algorithm : capabilities.algorithms) text += " " + algorithm.name;
  return text;
}

// The table row of a plugin, or of a file that was rejected.
std::vector<std::string> row(const plugin::Listed& listed) {
  const std::string kind = plugin::name_of(listed.kind);
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

}  // namespace

ExitCode plugins(const Arguments& arguments) {
  const auto registry = plugin::Registry::standard(arguments.plugin_paths);
  console::Table table({{"kind"}, {"name"}, {"version"}, {"library"}, {"about"}, {"path"}});
  for (const plugin::Listed& listed : data::list_plugins(registry)) table.row(row(listed));
  for (const ddprun_dataset_plugin& dataset : data::builtin_datasets()) {
    table.row(row({plugin::Kind::dataset, dataset.name, "built in", &dataset}));
  }
  std::fputs(table.text().c_str(), stdout);
  return ExitCode::ok;
}

}  // namespace ddprun::app
