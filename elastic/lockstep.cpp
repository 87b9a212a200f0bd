#include "elastic/lockstep.hpp"

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/autocast_mode.h>
#include <c10/util/ScopeExit.h>

#include "ddprun/error.hpp"

namespace ddprun::elastic {

// Unless something has failed before. Meanwhile, another part may fail first.
void Lockstep::attempt(const std::function<void()>& call) {
  try {
    if (failure_ == nullptr) call();
  } catch (...) {
    if (failure_ == nullptr) failure_ = std::current_exception();
  }
}

void Lockstep::run(int count, const std::function<void(int part)>& body,
                   const std::function<void(int part, bool is_first)>& enter,
                   const std::function<void(int part, bool is_last)>& leave) {
  const auto parts = static_cast<std::size_t>(count);
  rows_.assign(parts, {});
  ended_.assign(parts, false);
  failure_ = nullptr;
  if (parts == 1) {
    enter(0, true);
    run_part(0, body);
    return leave(0, true);
  }
  while (threads_.size() < parts) {
    threads_.push_back(std::make_unique<train::WorkerThread>());
    threads_.back()->submit([] { at::init_num_threads(); });  // the number of compute threads is set per thread
  }
  const at::ThreadLocalState of_caller;
  for (std::size_t turn = 0, left = parts; left > 0; ++turn) {
    for (std::size_t index = 0; index < parts; ++index) {
      if (ended_[index]) continue;
      const int part = static_cast<int>(index);
      attempt([&] { enter(part, turn == 0); });
      give_turn(part);
      if (turn == 0) {
        threads_[index]->submit([&, part, index] {
          const at::ThreadLocalStateGuard as_caller(of_caller);
          attempt([&] { run_part(part, body); });
          ended_[index] = true;
          give_turn(kCaller);
        });
      }
      wait_for_turn(kCaller);
      attempt([&] { leave(part, ended_[index]); });
      if (ended_[index]) --left;
    }
    if (left > 0) attempt([&] { exchange(left == parts); });
  }
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

// All threads have one cache of the weights that autocast has cast. The end of one part's forward would clear it in the
// middle of the others'.
void Lockstep::run_part(int part, const std::function<void(int)>& body) {
  const bool before = at::autocast::is_autocast_cache_enabled();
  const auto after = c10::make_scope_exit([before] { at::autocast::set_autocast_cache_enabled(before); });
  at::autocast::set_autocast_cache_enabled(false);
  body(part);
}

void Lockstep::exchange(bool all_wait) {
  if (!all_wait) {
    throw Error(ExitCode::usage,
                "the virtual ranks of a step do not compute the same synchronized BatchNorms in the same order");
  }
  all_ = exchange_(torch::stack(rows_));
}

torch::Tensor Lockstep::gather(const torch::Tensor& row) {
  if (ended_.size() == 1) return exchange_(row.unsqueeze(0));
  const int part = turn_;
  rows_[static_cast<std::size_t>(part)] = row;
  give_turn(kCaller);
  wait_for_turn(part);
  if (failure_ != nullptr) throw Error(ExitCode::peer, "another virtual rank has failed");
  return all_;
}

void Lockstep::give_turn(int to) {
  {
    const std::lock_guard lock(mutex_);
    turn_ = to;
  }
  changed_.notify_all();
}

void Lockstep::wait_for_turn(int of) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return turn_ == of; });
}

}  // namespace ddprun::elastic
