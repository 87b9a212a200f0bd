#include <cstdio>

#include "base/version.hpp"
#include "cli/commands.hpp"
#include "cli/run/torch_facts.hpp"
#include "data/datasets.hpp"

namespace ddprun::app {

ExitCode version(const Arguments& arguments) {
  std::printf("ddprun %s\ntorch %s\ncompiler GCC %s\n", ddprun::version(), run::torch_version().c_str(), __VERSION__);
  for (const plugin::Listed& listed : data::list_plugins(plugin::Registry::standard(arguments.plugin_paths))) {
    if (!listed.hidden_by.empty()) continue;
    if (const auto* comm = std::get_if<const ddprun_comm_plugin*>(&listed.content)) {
      const std::string library = (*comm)->library;
      std::printf("plugin comm %s %s%s\n", (*comm)->name, (*comm)->version,
                  library.empty() ? "" : (" (" + library + ")").c_str());
    } else if (const auto* model = std::get_if<const ddprun_model_plugin*>(&listed.content)) {
      std::printf("plugin model %s %s (torch %s)\n", (*model)->name, (*model)->version, (*model)->torch_version);
    } else if (const auto* dataset = std::get_if<const ddprun_dataset_plugin*>(&listed.content)) {
      std::printf("plugin dataset %s %s\n", (*dataset)->name, (*dataset)->version);
    } else {
      std::printf("plugin %s refused: %s\n", listed.name.c_str(), std::get<std::string>(listed.content).c_str());
    }
  }
  return ExitCode::ok;
}

}  // namespace ddprun::app
