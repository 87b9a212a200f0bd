#include <doctest/doctest.h>

#include "support/error_of.hpp"
#include "support/text.hpp"
#include "testing/temp_dir.hpp"
#include "tools/compare/program.hpp"

using namespace ddprun;
using namespace ddprun::compare;
using testing::contains;
using testing::error_of;

namespace {

using Words = std::vector<std::string>;

Request request_of(Words program) {
  Request request;
  request.program = std::move(program);
  request.parity_steps = 2;
  return request;
}

}  // namespace

TEST_CASE("a variant of a program has its backend, its variables and its arguments") {
  const auto variants =
      variants_of_programs(request_of({"sh", "--cap={cap}", "{cap}{cap}"}),
                           grid_of({"backend=gloo,ddprun_shm", "env.UCX_TLS=\"tcp,sm\"", "cap=25"}), "--vary");
  REQUIRE(variants.size() == 2);
  CHECK(variants[0].name == "gloo UCX_TLS=\"tcp,sm\" cap=25");
  CHECK(variants[1].command == Words{"sh", "--cap=25", "2525"});
  CHECK(variants[1].environment ==
        Words{"DDPRUN_RECORD_PARITY=2", "DDPRUN_TORCH_BACKEND=ddprun_shm", "DDPRUN_BACKEND=shm", "UCX_TLS=tcp,sm"});
  CHECK(keys_that_differ(variants) == Words{"backend", "cap", "env.UCX_TLS"});
  const auto changed = variants_of_programs(request_of({"sh"}), {{}, {"backend=ucx"}}, "--change");
  CHECK(changed[0].name == "unchanged");
  CHECK(changed[0].environment == Words{"DDPRUN_RECORD_PARITY=2"});
}

TEST_CASE("a command of the shell is a variant with a name") {
  Request request;
  request.commands = {"old=a.py --x=1", "new=OMP_NUM_THREADS=1 a.py"};
  const auto variants = variants_of_programs(request, {{}}, "--vary");
  CHECK(variants[0].name == "old");
  CHECK(variants[1].command == Words{"/bin/sh", "-c", "OMP_NUM_THREADS=1 a.py"});
}

TEST_CASE("requests for programs that make no sense") {
  const auto error = [](Request request, const std::vector<Words>& own = {{}}) {
    return error_of([&] { variants_of_programs(request, own, "--vary"); });
  };
  CHECK(error(request_of({"sh", "x"}), {{"cap=1"}}) ==
        "2: compare: --vary cap=1: expected backend or env.NAME as its key, or {cap} in an argument of the program");
  CHECK(error(request_of({"no-such-program"})) == "2: compare: no-such-program: not on PATH");
  CHECK(contains(error(request_of({"sh"}), {{"backend=gloo"}, {"backend=gloo"}}), "two variants of the program"));
  Request request = request_of({"sh"});
  request.overrides = {"train.epochs=1"};
  CHECK(contains(error(request), "--set is for configs"));
  request = request_of({"sh"});
  request.nodes.nproc = 2;
  CHECK(contains(error(request), "give --nproc-per-node to the program's launcher"));
  request = {};
  request.commands = {"a.py"};
  CHECK(error(request) == "2: compare: --command a.py: expected NAME=PROGRAM");
  request.commands = {"a=x", "a=y"};
  CHECK(error(request) == "2: compare: --command: a name is given twice");
}

TEST_CASE("the cause of a program's failure, and of a missing record") {
  const testing::TempDir dir;
  tools::ChildEnd end;
  CHECK(contains(why_not_recorded(dir.path(), end), "nothing was recorded"));
  dir.write("steps-rank0.jsonl", "");
  CHECK(contains(why_not_recorded(dir.path(), end), "its record has no end"));
  dir.write("summary.json", "{}");
  CHECK(why_not_recorded(dir.path(), end).empty());
  end.process.code = 3;
  CHECK(why_not_recorded(dir.path(), end) == "exit code 3");
  dir.write("failure.txt", "ValueError: bad luck\n");
  CHECK(why_not_recorded(dir.path(), end) == "ValueError: bad luck");
}
