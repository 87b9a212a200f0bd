#include <cstdio>

#include "app/commands.hpp"
#include "fetch/fetch.hpp"

namespace ddprun::app {

ExitCode data_fetch(const Arguments& arguments) {
  const std::string usage =
      fetch::fetch(fetch::find_data_set(arguments.data_set), {arguments.root, arguments.mirror, {}});
  std::printf("%s\n", usage.c_str());
  return ExitCode::ok;
}

}  // namespace ddprun::app
