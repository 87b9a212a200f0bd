#include "shm/hierarchy.hpp"

#include <algorithm>
#include <future>
#include <string>
#include <system_error>

namespace ddprun::shm {
namespace {

// Large enough that a new thread costs little of a part's time, and small enough that most of a large vector overlaps.
constexpr uint64_t kPart = 4 << 20;

}  // namespace

bool has_two_levels(const std::vector<host::Process>& processes) {
  const auto hosts = host::leaders_of(processes).size();
  return hosts > 1 && hosts < processes.size();
}

Hierarchy::Hierarchy(const Host& host, const std::vector<host::Process>& processes)
    : rank_(host.rank()), leaders_(host::leaders_of(processes)), node_(host, processes) {
  host_ = static_cast<int>(std::find(leaders_.begin(), leaders_.end(), node_.ranks().front()) - leaders_.begin());
}

std::unique_ptr<Hierarchy> Hierarchy::make(const Host& host, const std::vector<host::Process>& processes, bool is_named,
                                           bool is_auto) {
  const bool is_meant = is_named || (is_auto && (!host.options().text("tuning").empty() || has_two_levels(processes)));
  return is_meant && host.size() > 1 ? std::make_unique<Hierarchy>(host, processes) : nullptr;
}

void Hierarchy::require_usable(const std::string& others) const {
  if (is_usable()) return;
  throw CommError(CommStatus::unsupported, "algorithm \"hierarchical\": the ranks of a host cannot share memory: " +
                                               node_.why_not() + "; use " + others);
}

void Hierarchy::allreduce(const Collective& call, const Between& between) {
  has_failed_between_ = false;
  if (leaders_.size() == 1 || call.count == 0) {
    return node_.run("allreduce",
                     [&](Collectives& all, Waiter& waiter) { all.allreduce(call, Algorithm::automatic, waiter); });
  }
  const uint64_t element = size_of(call.dtype), most = kPart / element;
  const std::size_t parts = (call.count + most - 1) / most;
  const auto part = [&](std::size_t number) {
    const uint64_t first = number * most;
    Collective some = call;
    some.send = static_cast<const std::byte*>(call.send) + first * element;
    some.recv = static_cast<std::byte*>(call.recv) + first * element;
    some.count = std::min(most, call.count - first);
    return some;
  };

  std::vector<std::shared_future<void>> begun;  // the parts between the hosts, each after the one before
  const auto begin = [&](std::size_t number) {
    Collective here = part(number);
    if (here.op == Op::avg) here.op = Op::sum;  // the leaders divide
    node_.run("allreduce", [&](Collectives& all, Waiter& waiter) { all.reduce_to_first(here, waiter); });
    Collective reduced = part(number);
    reduced.send = reduced.recv;
    const auto run = [&between, reduced, before = number > 0 ? begun.back() : std::shared_future<void>()] {
      if (before.valid()) before.get();
      between.allreduce(reduced);
    };
    const bool overlaps = leads() && parts > 1;
    try {
      begun.push_back(std::async(overlaps ? std::launch::async : std::launch::deferred, run));
    } catch (const std::system_error& error) {
      has_failed_between_ = true;
      throw CommError(CommStatus::internal, std::string("cannot start a thread: ") + error.what());
    }
  };
  const auto end = [&](std::size_t number) {
    try {
      begun[number].get();
    } catch (...) {
      has_failed_between_ = true;
      throw;
    }
    const Collective complete = part(number);
    node_.run("allreduce", [&](Collectives& all, Waiter& waiter) {
      all.broadcast(complete.recv, complete.count * element, 0, waiter);
    });
  };
  try {
    begin(0);
    for (std::size_t number = 0; number < parts; ++number) {
      if (number + 1 < parts) begin(number + 1);
      end(number);
    }
  } catch (...) {
    if (leads()) between.abort();  // the destructor of `begun` waits for its threads
    throw;
  }
}

}  // namespace ddprun::shm
