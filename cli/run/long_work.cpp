#include "cli/run/long_work.hpp"

#include <utility>

namespace ddprun::run {
namespace {

constexpr std::chrono::seconds kLook{1}, kLong{2};

bool is_step(Phase phase) {
  return phase != Phase::setup && phase != Phase::evaluate && phase != Phase::checkpoint;
}

std::string name_of_work(Phase phase, int64_t step) {
  switch (phase) {
    case Phase::setup: return "the set-up";
    case Phase::evaluate: return "the evaluation";
    case Phase::checkpoint: return "the checkpoint";
    default: return "step " + std::to_string(step);
  }
}

}  // namespace

LongWork::LongWork(Report report) : report_(std::move(report)), thread_([this] { run(); }) {}

LongWork::~LongWork() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LongWork::on_phase(Phase phase, int64_t step) {
  const std::lock_guard lock(mutex_);
  const bool same = !paused_ && step == step_ && (phase == phase_ || (is_step(phase) && is_step(phase_)));
  if (!same) since_ = Clock::now();
  step_ = step;
  phase_ = phase;
  paused_ = false;
}

void LongWork::pause() {
  const std::lock_guard lock(mutex_);
  paused_ = true;
}

void LongWork::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kLook, [this] { return stopping_; })) {
    const auto age = std::chrono::floor<std::chrono::seconds>(Clock::now() - since_);
    if (!paused_ && age >= kLong) report_(name_of_work(phase_, step_), phase_, age);
  }
}

}  // namespace ddprun::run
