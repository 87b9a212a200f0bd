// ZeroRedundancyOptimizer in a program that is not ours, started by `ddprun launch`.
#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "ddp/launched.hpp"

namespace ddprun::testing {
namespace {

// "NAME: equal HASH state OWN of WHOLE", of one rank.
struct Compared {
  char name[16], verdict[16], hash[24];
  double own, whole;
};

std::vector<Compared> compared_in(const Words& lines, const std::string& name) {
  std::vector<Compared> found;
  for (const std::string& line : lines) {
    Compared one{};
    const int fields = std::sscanf(line.c_str(), "%15[^:]: %15s %23s state %lf of %lf", one.name, one.verdict, one.hash,
                                   &one.own, &one.whole);
    if (fields == 5 && name == one.name) found.push_back(one);
  }
  return found;
}

TEST_CASE("the weights are those without ZeRO, bit for bit, and each rank has its part of the state") {
  for (const std::string backend : {"gloo", "shm"}) {
    for (const int ranks : {1, 2, 3}) {
      if (backend == "shm" && ranks == 1) continue;
      CAPTURE(backend);
      CAPTURE(ranks);
      const Words lines = lines_of(run(ranks, "same", backend));
      for (const std::string name : {"adam", "adamw", "sgd", "adagrad", "rmsprop"}) {
        CAPTURE(name);
        const auto compared = compared_in(lines, name);
        REQUIRE(compared.size() == static_cast<std::size_t>(ranks));
        double sum = 0;
        for (const Compared& one : compared) {
          CHECK(std::string(one.verdict) == "equal");
          CHECK(std::string(one.hash) == compared[0].hash);
          CHECK(one.own / one.whole > 0.8 / ranks);
          CHECK(one.own / one.whole < 1.2 / ranks);
          sum += one.own;
        }
        CHECK(sum == compared[0].whole);
      }
    }
  }
}

TEST_CASE("parameters of several dtypes, layouts and groups, frozen, without gradient and added later") {
  for (const int ranks : {1, 2, 3}) {
    CAPTURE(ranks);
    const Words lines = lines_of(run(ranks, "kinds"));
    REQUIRE(lines.size() == static_cast<std::size_t>(ranks));
    for (const std::string& line : lines) {
      CHECK_MESSAGE(line.starts_with("kinds: equal "), line);
      CHECK(line == lines[0]);
    }
  }
}

// A folder that the test removes.
struct Folder {
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  const std::string path = std::filesystem::temp_directory_path() / ("zero" + std::to_string(::getpid()));
};

// Equal on all ranks, without the part of the state that each has.
std::string weights_of(const ProcessResult& result) {
  const Words lines = lines_of(result);
  REQUIRE(!lines.empty());
  const std::string weights = lines[0].substr(0, lines[0].find(" state"));
  for (const std::string& line : lines) CHECK(line.starts_with(weights));
  return weights;
}

// The bytes of the state that all ranks have.
double state_of(const ProcessResult& result) {
  double sum = 0, bytes = 0;
  for (const std::string& line : lines_of(result)) {
    REQUIRE(std::sscanf(line.c_str(), "weights %*s state %lf", &bytes) == 1);
    sum += bytes;
  }
  return sum;
}

TEST_CASE("a state saved on two ranks continues on three and without ZeRO, and the other way round") {
  const Folder folder;
  const std::string sharded = folder.path + "/sharded", plain = folder.path + "/plain";
  const std::string weights = weights_of(run(1, "save_plain", "gloo", {plain}));
  CHECK(weights_of(run(2, "save", "gloo", {sharded})) == weights);
  const auto whole = run(1, "load_plain", "gloo", {sharded});
  const auto two = run(2, "load", "gloo", {plain}), three = run(3, "load", "gloo", {sharded});
  for (const auto* result : {&whole, &two, &three}) {
    CHECK(weights_of(*result) == weights);
    CHECK(state_of(*result) == state_of(whole));  // loading has not left the whole state on each rank
  }
}

TEST_CASE("every optimizer continues from the state that it has saved, with ZeRO and without") {
  const Folder folder;
  for (const int ranks : {1, 3}) {
    CAPTURE(ranks);
    const Words lines = lines_of(run(ranks, "reload", "gloo", {folder.path}));
    CHECK(lines.size() == 5U * static_cast<std::size_t>(ranks));
    for (const std::string& line : lines) CHECK_MESSAGE(line.ends_with(": zero equal, plain equal"), line);
  }
}

TEST_CASE("torch::load into the module is seen; other changes are errors that name the parameter") {
  CHECK(lines_of(run(2, "load_module")) == Words{"changed: equal", "changed: equal"});
  const auto check = [](const std::string& act, const std::string& message) {
    const auto result = run(2, act);
    CHECK(result.code == 2);
    CHECK_MESSAGE(contains(result.err, "ZeroRedundancyOptimizer: optimizer parameter " + message), result.err);
  };
  check("retype", "0 was Float [32, 32] and is now Double [32, 32]; construct the optimizer after such a change");
  check("transpose", "2 was Float [32, 32] and is now Float [32, 32] with strides [1, 32]");
  check("replace", "3 is another tensor now; add new ones with add_param_group()");
}

TEST_CASE("errors: one line that names the parameter") {
  const auto lists = run(2, "lists");
  CHECK(lists.code == 4);
  CHECK_MESSAGE(contains(lists.err,
                         "rank 0 has \"optimizer parameter 0\" Float [32, 32] requires_grad where rank 1 has "
                         "\"optimizer parameter 0\" Float [33, 33] requires_grad"),
                lists.err);
  const auto layouts = run(2, "layouts");
  CHECK(layouts.code == 4);
  CHECK_MESSAGE(contains(layouts.err, "with strides [1, 3]"), layouts.err);
  const auto gaps = run(2, "gaps");
  CHECK(gaps.code == 2);
  CHECK_MESSAGE(contains(gaps.err, "optimizer parameter 0 is sparse or has gaps in memory"), gaps.err);
  const auto unconsolidated = run(2, "unconsolidated");
  CHECK(unconsolidated.code == 2);
  CHECK_MESSAGE(contains(unconsolidated.err, "call consolidate_state_dict("), unconsolidated.err);
  const auto nowhere = run(2, "nowhere");
  CHECK(nowhere.code == 2);
  CHECK_MESSAGE(contains(nowhere.err, "consolidate_state_dict(2): expected a rank from 0 to 1"), nowhere.err);
}

}  // namespace
}  // namespace ddprun::testing
