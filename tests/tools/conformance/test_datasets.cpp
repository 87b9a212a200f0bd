// `ddprun-conformance --dataset`: correct data sets pass, and each fault is found by name. docs/conformance.md has the
// same list.
#include "faults.hpp"

namespace ddprun::testing {
namespace {

using Words = std::vector<std::string>;

constexpr Fault kFaults[] = {
    {"counts_calls", "samples: the same at every fetch", "train: sample 0: another input at the second fetch"},
    {"uses_place", "samples: the same in every order and batch", "sample 1: another input in a batch"},
    {"counts_epochs", "samples: the same whenever an epoch is fetched", "fetched again after another epoch"},
    {"shares_scratch", "samples: the same in several threads", "another input while other threads fetch"},
    {"uses_process", "samples: the same in another process", "another process gets other samples"},
    {"shares_splits", "samples: the same after the other split is closed", "after the training split was closed"},
    {"writes_past_end", "buffers: nothing is written outside", "wrote outside the buffer of the inputs"},
    {"leaves_gaps", "buffers: every byte is written", "not every byte is written"},
    {"any_index", "errors: an index outside the split is refused", "index 20 of 20 samples is not refused"},
    {"any_option", "errors: an unknown option is refused", "no_such_option is not refused"},
    {"changes_locale", "process: settings stay as they are", "changed the locale (C became C.UTF-8)"},
    {"leaks_descriptor", "process: closing leaves nothing open", "descriptors were left"},
    {"leaks_memory", "process: closing leaves nothing open", "bytes of the heap were left"},
    {"crashes", "samples: the same at every fetch", "the child process crashed: Aborted"},
};

TEST_CASE("each fault of a data set is found") {
  for (const Fault& fault : kFaults) require_found({"--dataset", DDPRUN_FAULTY}, "data set", fault);
}

TEST_CASE("correct data sets pass") {
  for (const Words& correct : {Words{"--dataset", DDPRUN_FAULTY, "--verbose"}, Words{"--dataset=linear"},
                               Words{"--dataset", "synthetic", "--option", "shape=3x8x8", "--option", "samples=1"}}) {
    CAPTURE(correct.back());
    const ProcessResult result = conformance(correct);
    CHECK_MESSAGE(result.code == 0, (result.err + result.out));
    CHECK_MESSAGE(contains(result.out, "12 passed, 0 failed, 0 skipped"), result.out);
  }
}

TEST_CASE("what the user can correct is reported before any check, with the option") {
  const ProcessResult option = conformance({"--dataset", "linear", "--option", "samples=many"});
  CHECK(option.code == 2);
  CHECK_MESSAGE(contains(option.err, "--option samples: "), option.err);
  const ProcessResult root = conformance({"--dataset", "idx", "--root", "/nowhere"});
  CHECK(root.code == 2);
  CHECK_MESSAGE(contains(root.err, "--root: /nowhere"), root.err);
  const ProcessResult filter = conformance({"--dataset", "linear", "--filter", "no such check"});
  CHECK(filter.code == 2);
  CHECK(conformance({"--dataset", "no-such-data-set"}).code == 2);
}

TEST_CASE("--list runs nothing") {
  const ProcessResult result = conformance({"--dataset", DDPRUN_FAULTY, "--option", "fault=crashes", "--list"});
  CHECK(result.code == 0);
  for (const Fault& fault : kFaults) {
    CHECK_MESSAGE(contains(result.out, std::string("data set: ") + fault.check + "\n"), result.out);
  }
}

}  // namespace
}  // namespace ddprun::testing
