// Lockstep: computes the virtual ranks of a rank in turns, so that each can wait for values of all others, as a
// synchronized BatchNorm does.
#pragma once

#include <torch/torch.h>

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "train/device/worker_thread.hpp"

namespace ddprun::elastic {

// Each part of a step has a thread of its own, because autograd keeps the state of a backward in its thread. Only one
// of them runs at a time, in the order of the parts, until it ends or waits in gather(). A single part runs in the
// calling thread.
class Lockstep {
 public:
  // Gets one row for each part of this rank, [parts, ...]. Returns the rows of all virtual ranks, in order. Collective.
  using Exchange = std::function<torch::Tensor(const torch::Tensor& rows)>;
  explicit Lockstep(Exchange exchange) : exchange_(std::move(exchange)) {}

  // Calls body(part) for parts 0 .. count - 1. The calling thread calls enter(part, is_first) before each turn of a
  // part, and leave(part, is_last) after it. Throws the first exception of any of them and of the exchange, after all
  // parts have ended; Error(usage) if the parts call gather() different numbers of times.
  void run(int count, const std::function<void(int part)>& body,
           const std::function<void(int part, bool is_first)>& enter,
           const std::function<void(int part, bool is_last)>& leave);
  // Within body only: gives this row, and returns the rows of all virtual ranks, [virtual ranks, ...].
  torch::Tensor gather(const torch::Tensor& row);

 private:
  static constexpr int kCaller = -1;

  void run_part(int part, const std::function<void(int)>& body);
  void attempt(const std::function<void()>& call);
  void exchange(bool all_wait);
  void give_turn(int to);
  void wait_for_turn(int of);

  const Exchange exchange_;
  std::vector<torch::Tensor> rows_;  // by part
  std::vector<bool> ended_;          // by part
  torch::Tensor all_;                // of the last exchange
  std::exception_ptr failure_;       // the first
  std::mutex mutex_;                 // hands the members over with the turn
  std::condition_variable changed_;
  int turn_ = kCaller;                                         // the part that runs
  std::vector<std::unique_ptr<train::WorkerThread>> threads_;  // last member: they use the others
};

}  // namespace ddprun::elastic
