#include "tools/tune/model.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

using namespace ddprun;
using predict::Bucket;
using tune::Basis;
using tune::Curve;
using tune::Settings;

namespace {

constexpr double kKi = 1024, kMi = 1024 * kKi;
const Settings kOwn = {"gloo", "tree", 25, "none"};

Curve line(double alpha, double beta) {
  Curve curve;
  for (double bytes = kKi; bytes <= 64 * kMi; bytes *= 4) curve[bytes] = alpha + bytes * beta;
  return curve;
}

// `count` gradients of `bytes` in equal distances: the last at the end of backward.
std::vector<Bucket> equal_gradients(int count, double bytes) {
  std::vector<Bucket> gradients;
  for (int i = 1; i <= count; ++i) gradients.push_back({bytes, 1 - static_cast<double>(i) / count});
  return gradients;
}

// A step of 100 ms, 60 of them backward, whose gradients go through "tree".
Basis basis_of(std::vector<Bucket> gradients, const Curve& tree) {
  return {{0.03, 0.06, 0.01}, std::move(gradients), {{{"gloo", "tree", "none"}, tree}}, 0, {{{"gloo", "none"}, 0}}};
}

double bytes_of(const std::vector<Bucket>& buckets) {
  double bytes = 0;
  for (const Bucket& bucket : buckets) bytes += bucket.bytes;
  return bytes;
}

}  // namespace

TEST_CASE("a curve is straight between measured sizes, and in proportion beyond the largest") {
  const Curve curve = {{4096, 4e-3}, {1024, 1e-3}};
  CHECK(tune::seconds_at(curve, 1024) == 1e-3);
  CHECK(tune::seconds_at(curve, 10) == 1e-3);
  CHECK(tune::seconds_at(curve, 2560) == doctest::Approx(2.5e-3));
  CHECK(tune::seconds_at(curve, 4096) == 4e-3);
  CHECK(tune::seconds_at(curve, 8192) == doctest::Approx(8e-3));
}

TEST_CASE("buckets are those of the reducer: full at their cap, ready with their last gradient") {
  const auto gradients = equal_gradients(7, kMi);
  const auto buckets = tune::buckets_of(gradients, 2.5);
  REQUIRE(buckets.size() == 3);
  CHECK(buckets[0].bytes == kMi);  // the first one: 1 MiB, or the cap if that is smaller
  CHECK(buckets[0].remaining == gradients[0].remaining);
  CHECK(buckets[1].bytes == 3 * kMi);
  CHECK(buckets[1].remaining == gradients[3].remaining);
  CHECK(buckets[2].bytes == 3 * kMi);
  CHECK(buckets[2].remaining == 0);
  CHECK(tune::buckets_of(gradients, 1e-9).size() == 7);
  CHECK(tune::buckets_of(gradients, 100).size() == 2);
}

TEST_CASE("buckets have all gradients, for any caps") {
  CHECK(rc::check([] {
    std::vector<Bucket> gradients;
    const int count = *rc::gen::inRange(1, 40);
    for (int i = 0; i < count; ++i) {
      gradients.push_back({*rc::gen::inRange(1, 1 << 20) * 4.0, 1 - (i + 1.0) / count});
    }
    const double cap = *rc::gen::inRange(1, 64) / 16.0;
    const auto buckets = tune::buckets_of(gradients, cap);
    RC_ASSERT(bytes_of(buckets) == bytes_of(gradients));
    RC_ASSERT(buckets.back().remaining == 0.0);
    for (std::size_t i = 1; i < buckets.size(); ++i) {
      RC_ASSERT(buckets[i].remaining < buckets[i - 1].remaining);
      RC_ASSERT(i + 1 == buckets.size() || buckets[i].bytes >= cap * kMi);
    }
  }));
}

TEST_CASE("the expected step has what an allreduce takes longer than in a benchmark") {
  Basis basis = basis_of(equal_gradients(1, 4 * kMi), line(1e-3, 1e-9));
  CHECK(tune::expected(basis, kOwn).step == doctest::Approx(0.1 + 1e-3 + 4 * kMi * 1e-9));
  basis.per_call = 2e-3;
  basis.per_byte[{"gloo", "none"}] = 3e-9;
  CHECK(tune::expected(basis, kOwn).exposed == doctest::Approx(3e-3 + 4 * kMi * 4e-9));
  basis.curves.emplace(tune::Method{"gloo", "tree", "bf16"}, line(1e-3, 1e-9));
  basis.per_byte[{"gloo", "bf16"}] = 0;
  Settings half = kOwn;
  half.compression = "bf16";
  CHECK(tune::expected(basis, half).exposed == doctest::Approx(3e-3 + 2 * kMi * 1e-9));
}

TEST_CASE("what a call takes longer is the median of the smaller half, and not negative") {
  const Curve curve = line(1e-3, 1e-9);
  const auto call = [&](double bytes, double more) { return tune::Call{bytes, tune::seconds_at(curve, bytes) + more}; };
  CHECK(tune::extra_per_call(
            {call(kMi, 1), call(kKi, 2e-4), call(2 * kMi, 1), call(3 * kKi, 1e-4), call(2 * kKi, 3e-4)}, curve) ==
        doctest::Approx(2e-4));
  CHECK(tune::extra_per_call({call(kKi, -1e-4)}, curve) == 0);
}

TEST_CASE("with the fitted time for each byte, the expected step is the recorded one") {
  CHECK(rc::check([] {
    Basis basis = basis_of(equal_gradients(*rc::gen::inRange(1, 30), kMi), line(1e-4, 1e-9));
    const double step = tune::expected(basis, kOwn).step * *rc::gen::element(1.0, 1.02, 1.5, 3.0);
    basis.per_byte[{"gloo", "none"}] = tune::fitted_per_byte(basis, kOwn, step);
    RC_ASSERT(std::abs(tune::expected(basis, kOwn).step / step - 1) < 1e-6);
  }));
  const Basis basis = basis_of(equal_gradients(4, kMi), line(1e-4, 1e-9));
  CHECK(tune::fitted_per_byte(basis, kOwn, 0.05) == 0);  // shorter than without any communication
}

TEST_CASE("latency: where each call is dear and the link fast, the fewest buckets win") {
  // Backward ends with most gradients: overlap gains nothing.
  std::vector<Bucket> gradients(40, {kMi, 0});
  Basis basis = basis_of(std::move(gradients), line(20e-3, 1e-12));
  Settings own = kOwn;
  own.bucket_cap_mb = 1;
  const Settings chosen = tune::choose(basis, own);
  CHECK(tune::buckets_of(basis.gradients, chosen.bucket_cap_mb).size() == 2);  // the first one has 1 MiB
  CHECK(tune::expected(basis, chosen).step == doctest::Approx(0.14).epsilon(1e-3));
}

TEST_CASE("latency: the algorithm with the shorter one wins for small gradients, and buckets stay") {
  Basis basis = basis_of(equal_gradients(4, 10 * kKi), line(10e-3, 1e-9));
  basis.curves.emplace(tune::Method{"gloo", "ring", "none"}, line(2e-3, 1e-8));
  CHECK(tune::choose(basis, kOwn) == Settings{"gloo", "ring", 25, "none"});
}

TEST_CASE("bandwidth: where the link is slow, small buckets send while backward computes") {
  Basis basis = basis_of(equal_gradients(24, kMi), line(1e-5, 60e-3 / (24 * kMi)));
  const Settings chosen = tune::choose(basis, kOwn);
  // Only the first MiB is sent while backward computes.
  CHECK(tune::expected(basis, kOwn).exposed == doctest::Approx(60e-3 * 23 / 24).epsilon(1e-2));
  CHECK(tune::expected(basis, chosen).exposed < 5e-3);
  CHECK(chosen.algorithm == "tree");
}

TEST_CASE("bandwidth: compression wins if its casts cost less than what it saves, and only if nothing else does") {
  Basis basis = basis_of({{24 * kMi, 0}}, line(1e-5, 60e-3 / (24 * kMi)));
  basis.curves.emplace(tune::Method{"gloo", "tree", "bf16"}, line(1e-5, 60e-3 / (24 * kMi)));
  basis.per_byte[{"gloo", "bf16"}] = 0;
  CHECK(tune::choose(basis, kOwn) == Settings{"gloo", "tree", 25, "bf16"});
  basis.per_byte[{"gloo", "bf16"}] = 2 * 60e-3 / (24 * kMi);
  CHECK(tune::choose(basis, kOwn) == kOwn);
  basis.per_byte[{"gloo", "bf16"}] = 0;
  basis.curves.emplace(tune::Method{"ucx", "ring", "none"}, line(1e-5, 30e-3 / (24 * kMi)));
  basis.per_byte[{"ucx", "none"}] = 0;
  CHECK(tune::choose(basis, kOwn) == Settings{"ucx", "ring", 25, "none"});  // two lines, but the same numbers
}

TEST_CASE("nothing to gain: the config stays as it is, within the noise") {
  Basis basis = basis_of(equal_gradients(24, kMi), line(1e-6, 1e-12));
  CHECK(tune::choose(basis, kOwn) == kOwn);
  basis.curves.emplace(tune::Method{"gloo", "ring", "none"}, line(1e-6, 1e-13));
  CHECK(tune::choose(basis, kOwn) == kOwn);
  Settings odd = kOwn;
  odd.bucket_cap_mb = 7.5;
  CHECK(tune::choose(basis, odd) == odd);
}

TEST_CASE("no choice is slower than the config, and a change gains more than the noise") {
  CHECK(rc::check([] {
    std::vector<Bucket> gradients = equal_gradients(*rc::gen::inRange(1, 40), *rc::gen::inRange(1, 4000) * kKi);
    const auto any_line = [] { return line(*rc::gen::inRange(1, 1000) * 1e-5, *rc::gen::inRange(1, 1000) * 1e-11); };
    Basis basis = basis_of(std::move(gradients), any_line());
    for (const char* algorithm : {"ring", "tree", "doubling"}) {
      basis.curves.emplace(tune::Method{"gloo", algorithm, "none"}, any_line());
      basis.curves.emplace(tune::Method{"gloo", algorithm, "bf16"}, any_line());
    }
    basis.per_byte[{"gloo", "bf16"}] = *rc::gen::inRange(0, 100) * 1e-11;
    const Settings chosen = tune::choose(basis, kOwn);
    const double before = tune::expected(basis, kOwn).step, after = tune::expected(basis, chosen).step;
    RC_ASSERT(chosen == kOwn || after < before);
    for (const char* algorithm : {"ring", "tree", "doubling"}) {
      const Settings other = {"gloo", algorithm, 25, "none"};
      RC_ASSERT(after <= tune::expected(basis, other).step * (1 + tune::kNoise));
    }
  }));
}
