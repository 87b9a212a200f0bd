// The registry and its checks with data set plugins. test_registry.cpp tests what all kinds of plugins have in common.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "plugin/registry.hpp"
#include "support/error_of.hpp"
#include "support/paths.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::plugin {
namespace {

const std::string kFakes = testing::build_dir() + "/tests/fakes";

std::string file_of(const std::string& name) {
  return kFakes + "/libddprun_dataset_" + name + ".so";
}

std::string dataset_error(const std::string& name) {
  return testing::error_of([&] { Registry({kFakes}).dataset(name); });
}

std::string refusal(const std::string& name, const std::string& rest) {
  return "3: dataset plugin " + file_of(name) + ": " + rest;
}

}  // namespace

TEST_CASE("a data set plugin is found by name and by path") {
  const Registry registry({kFakes});
  const DatasetPlugin counting = registry.dataset("counting");
  CHECK(counting.path == file_of("counting"));
  CHECK(std::string(counting.table->version) == "1.2.3");
  CHECK(registry.dataset(file_of("counting")).table == counting.table);
  CHECK(dataset_error("countin") ==
        "3: dataset plugin \"countin\": not found: looked in " + kFakes +
            "; there is \"counting\", \"liar\", \"longer\", \"misnamed\", \"mnist\", \"newer_abi\", \"no_entry\", "
            "\"no_fetch\", \"shorter\", \"threaded\" and \"throwing\" (did you mean \"counting\"?)");
}

TEST_CASE("each reason to refuse a data set plugin gives a different line") {
  const std::string advice = "; rebuild the plugin with this ddprun's headers";
  CHECK(dataset_error("no_entry") ==
        refusal("no_entry",
                "no entry point: it does not export ddprun_dataset_plugin_v1; is it a dataset plugin of another "
                "version?"));
  CHECK(dataset_error("newer_abi") ==
        refusal("newer_abi", "wrong ABI: the plugin has version 3, this ddprun takes version 1" + advice));
  CHECK(dataset_error("shorter") == refusal("shorter", "wrong ABI: its table has 56 bytes, version 1 has 64" + advice));
  CHECK(dataset_error("longer") == "no error");
  CHECK(dataset_error("no_fetch") == refusal("no_fetch", "incomplete: fetch is null"));
  CHECK(dataset_error("misnamed") == refusal("misnamed",
                                             "wrong name: the plugin calls itself \"another\", its file \"misnamed\"; "
                                             "rename one of the two"));
}

TEST_CASE("a plugin of another kind is reported with its kind") {
  const std::string comm = kFakes + "/libddprun_comm_good.so";
  const std::string missing = ": no entry point: it does not export ";
  CHECK(dataset_error(comm) == "3: dataset plugin " + comm + missing + "ddprun_dataset_plugin_v1; it is a comm plugin");
  CHECK(testing::error_of([] { Registry({}).comm(file_of("counting")); }) ==
        "3: comm plugin " + file_of("counting") + missing + "ddprun_comm_plugin_v1; it is a dataset plugin");
}

TEST_CASE("data set plugins are listed with their tables") {
  std::size_t tables = 0;
  for (const Listed& listed : Registry({kFakes}).list()) {
    if (listed.kind != Kind::dataset || listed.name != "counting") continue;
    CHECK(std::string(std::get<const ddprun_dataset_plugin*>(listed.content)->summary) == "counts, in plain C");
    ++tables;
  }
  CHECK(tables == 1);
}

TEST_CASE("the names of a kind are unique, and include plugins that do not load") {
  const testing::TempDir other;
  for (const char* name : {"counting", "no_fetch"}) {
    std::filesystem::copy_file(file_of(name), other.path() / std::filesystem::path(file_of(name)).filename());
  }
  const auto names = Registry({kFakes, other.path().string()}).names(Kind::dataset);
  CHECK(names.size() == 11);
  CHECK(names.front() == "counting");
  CHECK(Registry({kFakes}).names(Kind::model) == std::vector<std::string>{"other_torch"});
}

}  // namespace ddprun::plugin
