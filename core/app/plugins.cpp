#include <cstdio>

#include "app/commands.hpp"
#include "comm/plugin_backend.hpp"
#include "ddprun/words.hpp"
#include "plugin/registry.hpp"
#include "report/table.hpp"

namespace ddprun::app {
namespace {

std::string describe(const comm::Capabilities& capabilities) {
  std::string text;
  const auto add = [&](bool has, const char* word) {
    if (has && !text.empty()) text += ' ';
    if (has) text += word;
  };
  add(capabilities.host, "host");
  add(capabilities.cuda, "cuda");
  add(capabilities.blocking, "blocking");
  add(capabilities.stream_ordered, "stream-ordered");
  add(capabilities.alloc, "alloc");
  text += "; algorithms auto";
  for (const comm::Algorithm& algorithm : capabilities.algorithms) text += " " + algorithm.name;
  return text;
}

}  // namespace

ExitCode plugins(const Arguments& arguments) {
  const auto registry = plugin::Registry::standard(arguments.plugin_paths);
  report::Table table({{"kind"}, {"name"}, {"version"}, {"library"}, {"capabilities"}, {"path"}});
  for (const plugin::Listed& listed : registry.list()) {
    if (const auto* refusal = std::get_if<std::string>(&listed.content)) {
      table.row({listed.kind == plugin::Kind::comm ? "comm" : "model", listed.name, "-", "-", "refused: " + *refusal,
                 listed.path});
    } else if (const auto* comm = std::get_if<const ddprun_comm_plugin*>(&listed.content)) {
      table.row({"comm", (*comm)->name, (*comm)->version, (*comm)->library, describe(comm::capabilities_of(**comm)),
                 listed.path});
    } else {
      const auto* model = std::get<const ddprun_model_plugin*>(listed.content);
      table.row({"model", model->name, model->version, std::string("torch ") + model->torch_version, "", listed.path});
    }
  }
  std::fputs(table.text().c_str(), stdout);
  return ExitCode::ok;
}

}  // namespace ddprun::app
