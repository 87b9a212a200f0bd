// The plugin without the library that brings UCX.
#include <doctest/doctest.h>

#include <filesystem>

#include "comm/plugin_backend.hpp"
#include "plugin/registry.hpp"
#include "support/error_of.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::testing {
namespace {

TEST_CASE("the error names a missing library, and what to do; the plugin is listed all the same") {
  const TempDir folder;
  const auto alone = folder.path() / "libddprun_comm_ucx.so";
  std::filesystem::copy_file(DDPRUN_UCX, alone);
  const auto& table = *plugin::Registry({}).comm(alone).table;
  CHECK(std::string(table.name) == "ucx");
  comm::JoinOptions options;
  options.allgather = [](std::string_view mine) { return std::vector{std::string(mine)}; };
  CHECK(error_of([&] { comm::join(table, options); })
            .starts_with("3: ucx: rank 0: joining 1 rank: unsupported: a library is missing: " +
                         (folder.path() / "libddprun_ucx_backend.so").string() + ": cannot open shared object file"));
}

}  // namespace
}  // namespace ddprun::testing
