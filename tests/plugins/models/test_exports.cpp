#include "support/torch_test.hpp"

#include <string>
#include <vector>

#include "plugins/models/load_model.hpp"
#include "support/process.hpp"

using namespace ddprun::testing;

TEST_CASE("a model plugin exports its entry and nothing else") {
  for (const std::string name : {"linear", "simplenet", "resnet18"}) {
    Process nm({"/usr/bin/nm", "--dynamic", "--defined-only", "--format=just-symbols", model_plugin(name).path}, {});
    const ProcessResult result = nm.wait();
    CHECK(result.code == 0);
    CHECK(result.out == "ddprun_model_plugin_v1\n");
  }
}

TEST_CASE("a model plugin reports its name and what it was built with") {
  for (const std::string name : {"linear", "simplenet", "resnet18"}) {
    const auto* table = model_plugin(name).table;
    CHECK(table->name == name);
    CHECK(table->torch_version == ddprun::train::torch_version());
    CHECK(table->struct_size == sizeof(ddprun_model_plugin));
  }
}
