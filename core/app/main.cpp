// The program `ddprun`. It is linked without LibTorch: the engine and the tools are programs of their own.
#include <filesystem>

#include "app/commands.hpp"
#include "app/tools.hpp"
#include "console/program.hpp"

namespace ddprun::app {
namespace {

[[noreturn]] void run_engine(const Arguments& arguments) {
  const auto bin = std::filesystem::path(console::this_program()).parent_path();
  run_tool(bin.parent_path() / "libexec/ddprun-engine", {arguments.argv.begin() + 1, arguments.argv.end()});
}

}  // namespace

ExitCode train(const Arguments& arguments) {
  run_engine(arguments);
}
ExitCode validate(const Arguments& arguments) {
  run_engine(arguments);
}
ExitCode evaluate(const Arguments& arguments) {
  run_engine(arguments);
}
ExitCode plugins(const Arguments& arguments) {
  run_engine(arguments);
}
ExitCode version(const Arguments& arguments) {
  run_engine(arguments);
}

}  // namespace ddprun::app

int main(int argc, char** argv) {
  return ddprun::console::run_program([&] { return ddprun::app::run(argc, argv); });
}
