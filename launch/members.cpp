#include "launch/members.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "launch/rendezvous.hpp"

namespace ddprun::launch {

Members::Members(const JobLink& link, int least, std::chrono::milliseconds timeout, std::unique_ptr<Store> store)
    : nodes_(static_cast<int>(link.nodes().size())), least_(least), timeout_(timeout), store_(std::move(store)) {
  for (int rank = 0; rank < link.world(); ++rank) ranks_.insert(rank);
}

std::string Members::apply(const MemberChange& change, bool has_begun) {
  const RankEnd& end = change.end;
  const bool is_node = end.lost > 0;
  if (is_node) nodes_ += change.trains ? 1 : -1;
  if (is_node && change.trains) return end.host + " is back, and starts its ranks";
  const std::size_t before = ranks_.size();
  for (int rank = end.rank; rank < end.rank + std::max(end.lost, 1); ++rank) ranks_.erase(rank);
  if (change.trains) ranks_.insert(end.rank);
  if (is_node && nodes_ == least_ - 1) {
    waits_ = true;
    missed_ = end;
    give_up_ = JobLink::Clock::now() + timeout_;
  }
  if (is_node && ranks_.size() == before && !waits()) return {};  // they had died or ended before
  const bool has_died = !change.trains && first_cause({end}) != nullptr;
  if (has_died && (ranks_.empty() || !has_begun)) {
    if (!fatal_) fatal_ = end;
    return {};
  }
  if (change.trains && nodes_ >= least_) waits_ = false;
  report(has_died);
  if (has_died) return describe(end) + "; " + others();
  if (!change.trains) return {};
  return "rank " + std::to_string(end.rank) + " (" + end.host + ", pid " + std::to_string(end.pid) +
         ") has been started again; " + others();
}

void Members::report(bool has_died) {
  std::string members;
  for (const int rank : ranks_) members += std::to_string(rank) + " ";
  store_->set(members_key(++changes_), (waits_ ? "" : members) + (has_died ? kDied : ""));
}

void Members::stop_waiting() {
  least_ = 0;
  if (std::exchange(waits_, false)) report();
}

// What the other ranks do: "3 ranks go on".
std::string Members::others() const {
  const std::string ranks = std::to_string(ranks_.size()) + (ranks_.size() == 1 ? " rank" : " ranks");
  if (!waits()) return ranks + (ranks_.size() == 1 ? " goes on" : " go on");
  return ranks + (ranks_.size() == 1 ? " waits" : " wait") + " until " + std::to_string(least_) +
         " hosts are there, at most " + exact_text(std::chrono::duration<double>(timeout_).count()) + " s";
}

const std::optional<RankEnd>& Members::fatal() {
  if (gives_up() && !fatal_) fatal_ = missed_;
  return fatal_;
}

}  // namespace ddprun::launch
