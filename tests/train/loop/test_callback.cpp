#include "support/torch_test.hpp"

#include "train/fit.hpp"
#include "train/loop/tracer.hpp"

namespace ddprun::train {
namespace {

// Writes down each call.
struct Calls final : Callback {
  Calls(std::string name, std::vector<std::string>& log) : name(std::move(name)), log(log) {}
  void on_fit_start(LoopState&) override { add("fit_start"); }
  void on_phase(Phase, int64_t, int) override { add("phase"); }
  bool needs_sync(int64_t) override {
    add("needs_sync");
    return answers;
  }
  bool should_skip_step(int64_t) override {
    add("should_skip_step");
    return answers;
  }
  void before_optimizer_step(int64_t) override { add("before_optimizer_step"); }
  void after_optimizer_step(int64_t) override { add("after_optimizer_step"); }
  void on_step_end(const record::StepRecord&, int64_t, LoopState&) override { add("step_end"); }
  void on_epoch_trained(LoopState&) override { add("epoch_trained"); }
  void on_epoch_end(const record::EpochRecord&, LoopState&) override { add("epoch_end"); }
  bool should_stop(int64_t) override {
    add("should_stop");
    return answers;
  }
  bool needs_checkpoint(int64_t) override {
    add("needs_checkpoint");
    return answers;
  }
  void on_checkpoint(LoopState&) override { add("checkpoint"); }
  void on_fit_end(LoopState&) override { add("fit_end"); }
  void add(const std::string& call) { log.push_back(name + " " + call); }

  std::string name;
  std::vector<std::string>& log;
  bool answers = false;
};

// All calls but phases, whose order test_trainer.cpp checks.
std::vector<std::string> without_phases(std::vector<std::string> calls) {
  std::erase_if(calls, [](const std::string& call) { return call.ends_with(" phase"); });
  return calls;
}

TEST_CASE("a training of one step calls each function of each callback, in the order of the list") {
  std::vector<std::string> log;
  Calls first("a", log), second("b", log);
  Fit<LineModel> fit(0, 1, 4, 4, Last::pad);
  fit.more = {&first, &second};
  fit.run_single(epochs(1));
  std::vector<std::string> expected;
  for (const char* call : {"fit_start", "should_skip_step", "before_optimizer_step", "after_optimizer_step", "step_end",
                           "should_stop", "needs_checkpoint", "epoch_trained", "epoch_end", "fit_end"}) {
    expected.push_back(std::string("a ") + call);
    expected.push_back(std::string("b ") + call);
  }
  CHECK(without_phases(log) == expected);
}

TEST_CASE("one callback of a list is enough to stop, and to ask for a step at once") {
  std::vector<std::string> log;
  Calls first("a", log), second("b", log);
  CallbackList list({&first, &second});
  CHECK_FALSE(list.should_stop(1));
  CHECK_FALSE(list.needs_sync(1));
  second.answers = true;
  CHECK(list.should_stop(1));
  CHECK(list.needs_sync(1));
}

TEST_CASE("a tracer hides no event from the other callbacks: measured batch weights are still reported") {
  Fit<LineModel> fit(0, 1, 12, 4, Last::pad);
  Tracer tracer({2});
  std::vector<std::string> log;
  Calls after("after", log);
  fit.more = {&tracer, &after};
  fit.run_single(epochs(1));
  CHECK(std::count(log.begin(), log.end(), "after step_end") == 3);
  CHECK(std::count(log.begin(), log.end(), "after epoch_end") == 1);
}

TEST_CASE("a profiler that is made late leaves the environment alone: other threads may be reading it") {
  const char* const before = std::getenv("KINETO_LOG_LEVEL");
  const std::string value = before == nullptr ? "absent" : before;
  const OpProfiler profiler;
  const char* const after = std::getenv("KINETO_LOG_LEVEL");
  CHECK((after == nullptr ? "absent" : std::string(after)) == value);
}

}  // namespace
}  // namespace ddprun::train
