// `ddprun-conformance --model`: correct models pass, and each fault is found by name. docs/conformance.md has the same
// list.
#include "faults.hpp"

namespace ddprun::testing {
namespace {

using Words = std::vector<std::string>;

const Words kFaulty = {"--model",       DDPRUN_FAULTY, "--data-option", "shape=1x8x8",
                       "--data-option", "classes=4",   "--data-option", "samples=20"};

constexpr Fault kFaults[] = {
    {"random_weights", "weights: the same seed gives the same initial weights", "fc1.bias differs"},
    {"uses_process", "weights: the same in another process", "another process gets other weights"},
    {"counts_models", "state_dict: every model has the same names", "\"fc1_1.weight [256, 64] float\" became"},
    {"registers_later", "state_dict: training keeps names and tensors", "\"nothing\" became \"mean [1] float\""},
    {"replaces_parameter", "state_dict: training keeps names and tensors", "fc2.weight is another tensor"},
    {"counts_calls", "training: the same seed gives the same gradients", "the gradient of fc1.weight differs"},
    {"own_random", "training: the same seed gives the same gradients", "the gradient of fc1.weight differs"},
    {"detaches", "training: the same seed gives the same gradients", "the loss has no gradient"},
    {"one_output", "evaluation: any batch size", "the output for 2 samples has the shape [1, 4]"},
    {"sums_loss", "evaluation: the loss is the mean over the batch", "but the mean of their losses is"},
    {"correct_is_mean", "evaluation: correct counts samples", "correct is no int64 scalar"},
    {"counts_evaluations", "evaluation: changes nothing", "after an evaluation, calls differs"},
    {"any_option", "errors: an unknown option is refused", "no_such_option is not refused"},
    {"sets_threads", "process: settings stay as they are", "torch's number of threads"},
    {"leaks", "process: a destroyed model leaves no memory", "bytes of the heap were left by 4 models"},
};

TEST_CASE("each fault of a model is found") {
  for (const Fault& fault : kFaults) require_found(kFaulty, "model", fault);
}

TEST_CASE("correct models pass, also those that are found by name") {
  for (const Words& correct : {kFaulty, Words{"--model", "linear", "--dataset", "linear"},
                               Words{"--model=simplenet", "--data-option", "shape=1x8x8"}}) {
    CAPTURE(correct[0]);
    const ProcessResult result = conformance(correct);
    CHECK_MESSAGE(result.code == 0, (result.err + result.out));
    CHECK_MESSAGE(contains(result.out, "12 passed, 0 failed, 0 skipped"), result.out);
  }
}

TEST_CASE("what the user can correct is reported before any check") {
  const ProcessResult option = conformance({"--model", "simplenet", "--option", "hidden=0"});
  CHECK(option.code == 2);
  CHECK_MESSAGE(contains(option.err, "model.options.hidden"), option.err);
  const ProcessResult data = conformance({"--model", "simplenet", "--data-option", "classes=none"});
  CHECK(data.code == 2);
  CHECK_MESSAGE(contains(data.err, "--data-option classes: "), data.err);
  const ProcessResult missing = conformance({"--model", "no-such-model"});
  CHECK(missing.code == 3);
  CHECK_MESSAGE(contains(missing.err, "not found"), missing.err);
}

}  // namespace
}  // namespace ddprun::testing
