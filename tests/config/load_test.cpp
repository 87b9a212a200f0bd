#include <doctest/doctest.h>

#include "config/experiment.hpp"
#include "support/temp_dir.hpp"

using namespace ddprun;

TEST_CASE("the smallest experiment loads with every default, a name and one epoch") {
  testing::TempDir dir;
  const config::Loaded loaded = config::load(dir.write("tiny.toml", "model.name = 'linear'\ndata.name = 'linear'\n"), {});
  config::Experiment expected;
  expected.experiment.name = "tiny";
  expected.model.name = "linear";
  expected.data.name = "linear";
  expected.train.epochs = 1;
  CHECK(loaded.experiment == expected);
}
