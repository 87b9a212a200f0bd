#include <doctest/doctest.h>

#include <functional>

#include "support/error_of.hpp"
#include "support/paths.hpp"
#include "support/text.hpp"
#include "tools/bench/plan.hpp"

namespace ddprun::bench {
namespace {

using testing::contains;
using testing::error_of;

plugin::Registry fakes() {
  return plugin::Registry({testing::build_dir() + "/tests/fakes"});
}

Request request() {
  Request request;
  request.backends = {"good"};
  return request;
}

TEST_CASE("what must be equal on all hosts: all that changes the calls, and not what a host has of its own") {
  const std::string words = to_text(plan_of(request(), fakes()));
  const auto differs = [&](const std::function<void(Request&)>& change) {
    Request other = request();
    change(other);
    return to_text(plan_of(other, fakes())) != words;
  };
  CHECK(differs([](Request& r) { r.max_bytes = 32 << 20; }));
  CHECK(differs([](Request& r) { r.each.samples = 7; }));
  CHECK(differs([](Request& r) { r.each.warmup = 7; }));
  CHECK(differs([](Request& r) { r.each.checks = 7; }));
  CHECK(differs([](Request& r) { r.rounds = 7; }));
  CHECK(differs([](Request& r) { r.root = 1; }));
  CHECK(differs([](Request& r) { r.dtype = "double"; }));
  CHECK(differs([](Request& r) { r.op = "max"; }));
  CHECK(differs([](Request& r) { r.collectives = {"broadcast"}; }));
  CHECK(differs([](Request& r) { r.algorithms = {"slots"}; }));
  CHECK(differs([](Request& r) { r.backends = {"good", "off_by_one"}; }));
  CHECK_FALSE(differs([](Request& r) { r.json = "file"; }));
  CHECK(differs([](Request& r) { r.options = {"chunk=1"}; }));
  CHECK(differs([](Request& r) { r.options = {"good.chunk=1"}; }));
  CHECK_FALSE(differs([](Request& r) { r.options = {"interface=lo", "devices=eth0"}; }));
}

TEST_CASE("names are those of nccl-tests, or PyTorch's") {
  for (const char* name : {"float", "float32"}) {
    Request one = request();
    one.dtype = name;
    one.op = "product";
    CHECK(plan_of(one, fakes()).dtype == DType::float32);
    CHECK(plan_of(one, fakes()).op == Op::product);
  }
  CHECK(type_name(DType::float16) == "half");
  CHECK(op_name(Op::product) == "prod");
}

TEST_CASE("from the smallest size to the largest, by factor or by step") {
  Request by_factor = request();
  by_factor.max_bytes = 300;
  CHECK(plan_of(by_factor, fakes()).sizes == std::vector<std::size_t>{4, 16, 64, 256});
  Request by_step = request();
  by_step.max_bytes = 16;
  by_step.step_bytes = 6;
  CHECK(plan_of(by_step, fakes()).sizes == std::vector<std::size_t>{4, 10, 16});
}

TEST_CASE("listed sizes replace all others") {
  Request listed = request();
  listed.sizes = {12, 1024, 45 << 20};
  CHECK(plan_of(listed, fakes()).sizes == std::vector<std::size_t>{12, 1024, 45 << 20});
}

TEST_CASE("every backend, algorithm and number of ranks is a variant") {
  Request two = request();
  two.algorithms = {"slots", "auto"};
  two.ranks = {2, 3};
  two.options = {"a=1", "good.b=2"};
  const Plan plan = plan_of(two, fakes());
  REQUIRE(plan.variants.size() == 4);
  CHECK(plan.variants[0].text() == "good slots, 2 ranks");
  CHECK(plan.variants[3].text() == "good auto, 3 ranks");
  CHECK(plan.variants[3].options == std::map<std::string, std::string>{{"a", "1"}, {"b", "2"}});
}

TEST_CASE("a backend with an allocator is measured with its buffers and with malloc's") {
  Plan plan = plan_of(request(), fakes());
  plan.collectives = {comm::Kind::allreduce, comm::Kind::broadcast};
  plan.sizes = {4};
  CHECK(cases_of(plan, plan.variants[0]).size() == 2 + 1);  // a broadcast has one buffer: only in place
  ddprun_comm_plugin with_alloc = *plan.variants[0].plugin.table;
  with_alloc.capabilities |= DDPRUN_CAP_ALLOC;
  plan.variants[0].plugin.table = &with_alloc;
  const auto cases = cases_of(plan, plan.variants[0]);
  REQUIRE(cases.size() == 2 * (2 + 1));
  CHECK(cases[0].source == comm::Source::backend);
  CHECK(cases[2].source == comm::Source::malloc);
  CHECK(cases[4].kind == comm::Kind::broadcast);
  CHECK(cases[4].in_place);
}

// The error of a valid request after this change.
std::string refusal(const std::function<void(Request&)>& change) {
  Request wrong = request();
  change(wrong);
  return error_of([&] { plan_of(wrong, fakes()); });
}

void check_refused(const std::function<void(Request&)>& change, const std::string& expected) {
  CHECK(refusal(change) == expected);
}

TEST_CASE("an invalid request is refused in one line") {
  check_refused([](Request& r) { r.max_bytes = 3; }, "2: -e 3: expected at least -b (4)");
  check_refused(
      [](Request& r) {
        r.sizes = {1024, 1024};
      },
      "2: --sizes 1024,1024: expected each size larger than the one before");
  check_refused([](Request& r) { r.ranks = {2, 2}; }, "2: --ranks 2,2: expected each value once");
  check_refused([](Request& r) { r.root = 2; }, "2: -r 2: expected a rank of every group of --ranks");
  check_refused([](Request& r) { r.algorithms = {"slot"}; },
                "2: --algorithm slot: good: expected \"auto\" or \"slots\" (did you mean \"slots\"?)");
  check_refused([](Request& r) { r.options = {"x"}; }, "2: --option x: expected KEY=VALUE or BACKEND.KEY=VALUE");
  check_refused([](Request& r) { r.options = {"god.x=1"}; },
                "2: --option god: expected \"good\" (did you mean \"good\"?)");
  CHECK(contains(refusal([](Request& r) { r.dtype = "flaot"; }), "(did you mean \"float\"?)"));
  CHECK(contains(refusal([](Request& r) { r.collectives = {"all_reduce"}; }), "(did you mean \"allreduce\"?)"));
  check_refused([](Request& r) { r.dtype = "half"; }, "2: -d half -o sum: good, algorithm auto, does not support them");
  check_refused(
      [](Request& r) {
        r.tune = "table";
        r.collectives = {"broadcast"};
      },
      "2: --tune broadcast: expected allreduce only: other collectives have no algorithms");
  CHECK(error_of([] {
          Request unknown;
          unknown.backends = {"nobody"};
          plan_of(unknown, fakes());
        }).starts_with("3: "));
}

}  // namespace
}  // namespace ddprun::bench
