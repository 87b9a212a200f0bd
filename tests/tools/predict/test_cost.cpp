#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "reduction/topology.hpp"
#include "tools/predict/cost.hpp"

using namespace ddprun::predict;

namespace {

constexpr double kKi = 1024, kMi = 1024 * kKi;
constexpr Algorithm kFlat[] = {Algorithm::ring, Algorithm::tree, Algorithm::doubling, Algorithm::halving_doubling};

Link any_link() {
  return {*rc::gen::inRange(1, 100'000) * 1e-8, *rc::gen::inRange(1, 100'000) * 1e-13};
}

// Every algorithm of every backend, between hosts and within a host.
Links any_links() {
  Links links;
  for (const Algorithm algorithm : kFlat) links.between[algorithm] = links.within[algorithm] = any_link();
  links.within[Algorithm::hierarchical] = any_link();
  return links;
}

Algorithm any_algorithm() {
  return *rc::gen::element(Algorithm::ring, Algorithm::tree, Algorithm::doubling, Algorithm::halving_doubling,
                           Algorithm::hierarchical);
}

}  // namespace

TEST_CASE("an algorithm is known by the name that its backend gives it") {
  CHECK(algorithm_of("gloo", "ring") == Algorithm::ring);
  CHECK(algorithm_of("somebodys", "ring") == Algorithm::ring);
  CHECK(algorithm_of("gloo", "tree") == Algorithm::tree);
  CHECK(algorithm_of("gloo", "doubling") == Algorithm::doubling);
  CHECK(algorithm_of("ucx", "tree") == Algorithm::doubling);
  CHECK(algorithm_of("ucx", "halving_doubling") == Algorithm::halving_doubling);
  CHECK(algorithm_of("ucx", "hierarchical") == Algorithm::hierarchical);
  CHECK(algorithm_of("gloo", "hierarchical") == Algorithm::hierarchical);
  CHECK_FALSE(algorithm_of("nccl", "tree"));
  CHECK_FALSE(algorithm_of("gloo", "rign"));
}

TEST_CASE("two hosts pass one vector each way") {
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::halving_doubling}) {
    CHECK(path_between(algorithm, {2, 1}, kMi).messages == 2);
    CHECK(path_between(algorithm, {2, 1}, kMi).bytes == kMi);
  }
  CHECK(path_between(Algorithm::doubling, {2, 1}, kMi).messages == 1);
  CHECK(path_between(Algorithm::doubling, {2, 1}, kMi).bytes == kMi);
  // Up and down one after another, unless the vector has several segments.
  CHECK(path_between(Algorithm::tree, {2, 1}, 256 * kKi).bytes == 512 * kKi);
  CHECK(path_between(Algorithm::tree, {2, 1}, 64 * kMi).bytes == 64 * kMi + 512 * kKi);
}

TEST_CASE("ring and halving-doubling send as few bytes as an allreduce can") {
  CHECK(path_between(Algorithm::ring, {8, 1}, kMi).messages == 14);
  CHECK(path_between(Algorithm::ring, {8, 1}, kMi).bytes == doctest::Approx(1.75 * kMi));
  CHECK(path_between(Algorithm::halving_doubling, {8, 1}, kMi).messages == 6);
  CHECK(path_between(Algorithm::halving_doubling, {8, 1}, kMi).bytes == doctest::Approx(1.75 * kMi));
  CHECK(path_between(Algorithm::halving_doubling, {9, 1}, kMi).bytes == doctest::Approx(3.75 * kMi));
}

TEST_CASE("the way down a tree is that of topology::Tree, if the children of a rank get their data together") {
  // Of `rank` and all below it: the longest way.
  const std::function<double(int, int)> below = [&](int rank, int size) {
    const auto children = ddprun::topology::Tree{rank, size, 0}.children();
    double longest = 0;
    for (const int child : children) longest = std::max(longest, below(child, size));
    return children.count + longest;
  };
  for (int hosts = 2; hosts < 70; ++hosts) {
    CAPTURE(hosts);
    const double rounds = ddprun::topology::Tree{0, hosts, 0}.rounds();
    const Path path = path_between(Algorithm::tree, {hosts, 1}, kKi);
    CHECK(path.messages == 2 * rounds);
    CHECK(path.bytes == (rounds + below(0, hosts)) * kKi);
  }
}

TEST_CASE(
    "recursive doubling has the exchanges of topology::Doubling, and one message before and after them for partners") {
  for (int hosts = 2; hosts < 70; ++hosts) {
    CAPTURE(hosts);
    const ddprun::topology::Doubling order{0, hosts};
    const bool has_partner = order.partner() >= 0;
    const Path path = path_between(Algorithm::doubling, {hosts, 1}, kKi);
    CHECK(path.messages == order.rounds() + (has_partner ? 2 : 0));
    CHECK(path.bytes == (order.rounds() + (has_partner ? 3 : 0)) * kKi);  // 3: its vector and the peer's come at once
  }
}

TEST_CASE("several ranks of a host share its link") {
  CHECK(path_between(Algorithm::ring, {2, 4}, kMi).messages == 14);
  CHECK(path_between(Algorithm::ring, {2, 4}, kMi).bytes == doctest::Approx(1.75 * kMi));
  CHECK(path_between(Algorithm::doubling, {2, 4}, kMi).bytes == 4 * kMi);  // each rank has a tree
  CHECK(path_between(Algorithm::tree, {2, 4}, kKi).bytes == 2 * kKi);      // one tree
  CHECK(path_between(Algorithm::halving_doubling, {2, 4}, kMi).bytes == kMi);
}

TEST_CASE("hierarchical adds the time within a host to that of its first ranks") {
  Links links;
  links.within[Algorithm::hierarchical] = {1e-6, 1e-10};
  links.between[Algorithm::doubling] = {1e-5, 1e-9};
  CHECK_FALSE(covers(links, Algorithm::hierarchical, {4, 8}));
  CHECK(covers(links, Algorithm::hierarchical, {1, 8}));
  links.between[Algorithm::ring] = {2e-5, 1e-9};
  REQUIRE(covers(links, Algorithm::hierarchical, {4, 8}));
  const auto seconds = [&](double bytes) { return allreduce_seconds(links, Algorithm::hierarchical, {4, 8}, bytes); };
  CHECK(seconds(64 * kKi) == doctest::Approx(1e-6 + 64 * kKi * 1e-10 + 2 * (1e-5 + 64 * kKi * 1e-9)));
  CHECK(seconds(kMi) == doctest::Approx(1e-6 + kMi * 1e-10 + 6 * 2e-5 + 1.5 * kMi * 1e-9));
  // In parts of 4 MiB: only the first one is not hidden.
  CHECK(seconds(64 * kMi) == doctest::Approx(1e-6 + 4 * kMi * 1e-10 + 6 * 2e-5 + 96 * kMi * 1e-9));
}

TEST_CASE("one rank needs no time, and the comparison of calls only several hosts") {
  CHECK(rc::check([] {
    const Links links = any_links();
    const Algorithm algorithm = any_algorithm();
    RC_ASSERT(allreduce_seconds(links, algorithm, {1, 1}, kMi) == 0.0);
    RC_ASSERT(check_seconds(links, algorithm, {1, 8}) == 0.0);
    RC_ASSERT(check_seconds(links, algorithm, {2, 8}) > 0.0);
  }));
}

TEST_CASE("more bytes take longer, within as many segments") {
  CHECK(rc::check([] {
    const Links links = any_links();
    const Algorithm algorithm = any_algorithm();
    const Shape shape = {*rc::gen::inRange<int64_t>(2, 4096), *rc::gen::inRange<int64_t>(1, 8)};
    const double from = *rc::gen::element(0, 64, 512, 1024) * kKi, a = *rc::gen::inRange(1, 32 << 10),
                 b = *rc::gen::inRange(1, 32 << 10);
    RC_PRE(a < b);
    RC_ASSERT(allreduce_seconds(links, algorithm, shape, from + a) <
              allreduce_seconds(links, algorithm, shape, from + b));
  }));
}

TEST_CASE("more hosts take longer, one by one for the ring, and doubled for all") {
  CHECK(rc::check([] {
    const Links links = any_links();
    const Algorithm algorithm = any_algorithm();
    const int64_t per_host = *rc::gen::inRange<int64_t>(1, 8), hosts = *rc::gen::inRange<int64_t>(2, 2048);
    const double bytes = *rc::gen::inRange(4, 64 << 20);
    const auto seconds = [&](Algorithm with, int64_t number) {
      return allreduce_seconds(links, with, {number, per_host}, bytes);
    };
    RC_ASSERT(seconds(Algorithm::ring, hosts) < seconds(Algorithm::ring, hosts + 1));
    const int64_t power = int64_t{1} << *rc::gen::inRange(0, 11);
    RC_ASSERT(seconds(algorithm, power) <= seconds(algorithm, 2 * power));  // equal: the hosts themselves are slower
  }));
}
