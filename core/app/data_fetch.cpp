#include <cstdio>

#include "app/commands.hpp"
#include "ddprun/plugin/words.hpp"
#include "tools/data/fetch.hpp"

namespace ddprun::app {

ExitCode data_fetch(const Arguments& arguments) {
  if (arguments.data_set.empty()) {
    throw Error(ExitCode::usage,
                "data fetch: expected the name of a data set: " + quoted_list(fetch::data_set_names()));
  }
  const std::string usage =
      fetch::fetch(fetch::find_data_set(arguments.data_set), {arguments.root, arguments.mirror, {}});
  std::printf("%s\n", usage.c_str());
  return ExitCode::ok;
}

}  // namespace ddprun::app
