#include <doctest/doctest.h>

#include <cmath>

#include "tools/lib/statistics.hpp"

namespace ddprun::tools {

// numpy.quantile of the same samples.
TEST_CASE("quantiles are those of NumPy") {
  CHECK(quantile({4, 1, 3, 2}, 0.5) == 2.5);
  CHECK(quantile({3, 1, 2}, 0.5) == 2);
  CHECK(quantile({5, 1, 2, 4, 3}, 0) == 1);
  CHECK(quantile({5, 1, 2, 4, 3}, 1) == 5);
  CHECK(quantile({5, 1, 2, 4, 3}, 0.95) == doctest::Approx(4.8));
  CHECK(quantile({7}, 0.95) == 7);
  CHECK(std::isnan(quantile({}, 0.5)));
}

}  // namespace ddprun::tools
