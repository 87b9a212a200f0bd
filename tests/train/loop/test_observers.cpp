#include "support/torch_test.hpp"

#include "train/fit.hpp"
#include "train/loop/tracer.hpp"

namespace ddprun::train {
namespace {

using Log = std::vector<std::string>;

// Write down each call.
struct Watches final : Observer {
  Watches(std::string name, Log& log) : name(std::move(name)), log(log) {}
  void before_optimizer_step(int64_t) override { add("before_optimizer_step"); }
  void after_optimizer_step(int64_t) override { add("after_optimizer_step"); }
  void on_step_end(const record::StepRecord&, int64_t, const LoopState&) override { add("step_end"); }
  void on_epoch_end(const record::EpochRecord&, const LoopState&) override { add("epoch_end"); }
  void on_fit_end() override { add("fit_end"); }
  void add(const std::string& call) { log.push_back(name + " " + call); }

  std::string name;
  Log& log;
};

struct Decides final : Policy {
  Decides(std::string name, Log& log) : name(std::move(name)), log(log) {}
  void start(LoopState&) override { add("start"); }
  bool skips_step(int64_t) override {
    add("skips_step");
    return skips;
  }
  void on_step_end(const record::StepRecord&, LoopState&) override { add("step_end"); }
  Decision after_step(int64_t) override {
    add("after_step");
    return at_step;
  }
  Decision after_epoch(const record::EpochRecord&, LoopState&) override {
    add("after_epoch");
    return at_epoch;
  }
  void add(const std::string& call) { log.push_back(name + " " + call); }

  std::string name;
  Log& log;
  bool skips = false;
  Decision at_step, at_epoch;
};

TEST_CASE("a training of one step calls each function of observers and policies, in the order of their lists") {
  Log log;
  Watches a("a", log), b("b", log);
  Decides c("c", log), d("d", log);
  Fit<LineModel> fit(0, 1, 4, 4, Last::pad);
  fit.observers = {&a, &b};
  fit.policies = {&c, &d};
  fit.run_single(epochs(1));
  CHECK(log == Log{"c start",
                   "d start",
                   "c skips_step",
                   "d skips_step",
                   "a before_optimizer_step",
                   "b before_optimizer_step",
                   "a after_optimizer_step",
                   "b after_optimizer_step",
                   "a step_end",
                   "b step_end",
                   "c step_end",
                   "d step_end",
                   "c after_step",
                   "d after_step",
                   "a epoch_end",
                   "b epoch_end",
                   "c after_epoch",
                   "d after_epoch",
                   "a fit_end",
                   "b fit_end"});
}

TEST_CASE("one policy of several is enough to leave out a step, to commit a checkpoint, and to stop") {
  Log log;
  Decides first("first", log), second("second", log);
  Watches observer("observer", log);
  Fit<LineModel> fit(0, 1, 8, 4, Last::pad);
  fit.observers = {&observer};
  fit.policies = {&first, &second};
  const Job two_epochs{.epochs = 2, .steps = std::nullopt, .checkpoint = {.every_epochs = 0}};
  first.skips = true;
  second.at_step.checkpoint = true;
  fit.run_single(two_epochs);
  CHECK(std::ranges::count(log, "observer before_optimizer_step") == 0);
  CHECK(std::ranges::count(log, "second skips_step") == 0);
  CHECK(fit.saved.steps == std::vector<int64_t>{1, 2, 3, 4});

  second.at_step = {.checkpoint = false, .stop = kInterrupted};
  fit.saved.steps.clear();
  const auto interrupted = fit.run_single(two_epochs);
  CHECK(interrupted.steps == 1);
  CHECK(interrupted.stopped == kInterrupted);
  CHECK(fit.saved.steps == std::vector<int64_t>{1});

  second.at_step = {};
  first.at_epoch = {.checkpoint = true, .stop = kEarlyStop};
  fit.saved.steps.clear();
  const auto early = fit.run_single(two_epochs);
  CHECK(early.steps == 2);
  CHECK(early.stopped == kEarlyStop);
  CHECK(fit.saved.steps == std::vector<int64_t>{2});
}

TEST_CASE("a tracer hides no event from the other observers") {
  Fit<LineModel> fit(0, 1, 12, 4, Last::pad);
  Tracer tracer({2});
  Log log;
  Watches after("after", log);
  fit.observers = {&tracer, &after};
  fit.run_single(epochs(1));
  CHECK(std::ranges::count(log, "after step_end") == 3);
  CHECK(std::ranges::count(log, "after epoch_end") == 1);
}

}  // namespace
}  // namespace ddprun::train
