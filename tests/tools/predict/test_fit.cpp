#include "tools/predict/links.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

using namespace ddprun::predict;

namespace {

std::vector<Measured> ring_rows(const Link& link, const std::vector<int64_t>& hosts) {
  std::vector<Measured> rows;
  for (const int64_t number : hosts) {
    for (double bytes = 1024; bytes <= 4 << 20; bytes *= 4) {
      const Path path = path_between(Algorithm::ring, {number, 1}, bytes);
      rows.push_back({path, link.seconds(path)});
    }
  }
  return rows;
}

}  // namespace

TEST_CASE("the fit finds the link that made the times") {
  CHECK(rc::check([] {
    const Link link = {*rc::gen::inRange(0, 100'000) * 1e-8, *rc::gen::inRange(1, 100'000) * 1e-13};
    const auto rows = ring_rows(link, {2, 3});
    RC_ASSERT(is_determined(rows));
    const Link found = fit(rows);
    RC_ASSERT(std::abs(found.alpha - link.alpha) <= 1e-6 * link.alpha + 1e-15);
    RC_ASSERT(std::abs(found.beta - link.beta) <= 1e-6 * link.beta);
    for (const Misfit& misfit : found.misfits) RC_ASSERT(std::abs(misfit.error) < 1e-6);
  }));
}

TEST_CASE("one size with a stall does not change the fit") {
  const Link link = {5e-5, 1e-9};
  auto rows = ring_rows(link, {2});
  rows[1].seconds += 4e-3;
  const Link found = fit(rows);
  CHECK(found.alpha == doctest::Approx(link.alpha));
  CHECK(found.beta == doctest::Approx(link.beta));
  CHECK(found.misfits[1].error < -0.9);
}

TEST_CASE("neither alpha nor beta gets negative") {
  // Small vectors are faster than in proportion, so the line through all points would begin below zero.
  const auto steep = fit({{{1, 1e3}, 1e-7}, {{1, 1e5}, 1e-3}, {{1, 1e6}, 1e-2}});
  CHECK(steep.alpha == 0);
  CHECK(steep.beta == doctest::Approx(1e-8));
  const auto falling = fit({{{1, 1e3}, 2e-3}, {{1, 1e5}, 1e-3}, {{1, 1e6}, 1e-3}});
  CHECK(falling.alpha == doctest::Approx(1e-3));
  CHECK(falling.beta == 0);
}

TEST_CASE("one size determines no link, whatever the number of hosts") {
  std::vector<Measured> rows;
  CHECK_FALSE(is_determined(rows));
  for (const int64_t hosts : {2, 3, 4}) rows.push_back({path_between(Algorithm::ring, {hosts, 1}, 65536), 1e-3});
  CHECK_FALSE(is_determined(rows));
  rows.push_back({path_between(Algorithm::ring, {2, 1}, 65536 * 4), 1e-3});
  CHECK(is_determined(rows));
}
