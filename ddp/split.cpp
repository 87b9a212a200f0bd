// Groups of a part of the ranks.
#include <algorithm>
#include <memory>
#include <set>

#include "ddp/joined_state.hpp"
#include "ddprun/error.hpp"
#include "ddprun/group.hpp"
#include "ddprun/plugin/host.hpp"
#include "launch/rendezvous.hpp"

namespace ddprun {
namespace {

using ddp::JoinedState;

// Every group of a user is that of init() or a part of it; the command's groups are not split.
std::shared_ptr<JoinedState> joined(Group::State& state) {
  state.comm_thread->drain();
  return std::static_pointer_cast<JoinedState>(state.shared_from_this());
}

// A rank of the group that is split.
struct Caller {
  int rank = 0, job_rank = 0, color = 0, key = 0;
  std::string host;
};

// Ranks with the same host share its memory and, if ddprun's launcher has started them, the folder of the job.
std::string host_of(const launch::World& world) {
  const std::string host = host_identity();
  return (host.empty() ? "rank " + std::to_string(world.rank) : host) + " " + world.job_dir;
}

// In the order of the ranks. All must make the same call.
std::vector<Caller> exchange(const JoinedState& state, int color, int key, const std::string& call) {
  const auto numbers = state.ranks.gather(std::vector<int64_t>{state.job_rank, color, key});
  const auto hosts = state.ranks.gather(host_of(state.world)), calls = state.ranks.gather(call);
  std::vector<Caller> callers;
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    const auto number = [&](std::size_t index) { return static_cast<int>(numbers[3 * rank + index]); };
    callers.push_back({static_cast<int>(rank), number(0), number(1), number(2), hosts[rank]});
    if (calls[rank] == calls[0]) continue;
    throw CommError(CommStatus::mismatch,
                    "rank 0 calls " + calls[0] + ", and rank " + std::to_string(rank) + " calls " + calls[rank]);
  }
  return callers;
}

// The place of the member `mine` in the new group.
launch::World world_of(launch::World world, const std::vector<Caller>& members, int mine) {
  const std::string& host = members[static_cast<std::size_t>(mine)].host;
  const auto is_here = [&](const Caller& member) { return member.host == host; };
  world.rank = mine;
  world.size = static_cast<int>(members.size());
  world.local_rank = static_cast<int>(std::count_if(members.begin(), members.begin() + mine, is_here));
  world.local_size = static_cast<int>(std::count_if(members.begin(), members.end(), is_here));
  if (world.local_size == world.size) world.master_port = 0;  // ranks of one host of the job: see World::on_one_host()
  return world;
}

// " of ranks 2, 3"
std::string names_of(const std::vector<Caller>& members) {
  constexpr std::size_t kMostNamed = 16;
  std::string text = " of ranks ";
  for (std::size_t i = 0; i < std::min(members.size(), kMostNamed); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(members[i].job_rank);
  }
  return members.size() > kMostNamed ? text + ", ..." : text;
}

std::optional<Group> split_by(const std::shared_ptr<JoinedState>& parent, int color, int key, const std::string& call,
                              const std::optional<GroupOptions>& options) {
  std::vector<Caller> members = exchange(*parent, color, key, call);
  const int count = parent->splits++;
  if (color < 0) return std::nullopt;
  std::erase_if(members, [&](const Caller& caller) { return caller.color != color; });
  std::ranges::stable_sort(members, {}, &Caller::key);
  const auto here = std::ranges::find(members, parent->world.rank, &Caller::rank);

  auto state = JoinedState::make();
  state->parent = parent;
  state->job_rank = here->job_rank;
  const std::string part = "-" + std::to_string(count) + "." + std::to_string(color);
  state->name = parent->name + part;
  state->world = world_of(parent->world, members, static_cast<int>(here - members.begin()));
  if (state->world.size > 1) {
    state->rendezvous.store = launch::prefixed_store(*parent->rendezvous.store, "split" + part + ":");
    state->rendezvous.link = parent->rendezvous.link;
  }
  GroupOptions wanted = options.value_or(parent->options);
  if (wanted.backend.empty()) wanted.backend = parent->options.backend;
  state->join(wanted, names_of(members));
  return Group(state);
}

}  // namespace

std::optional<Group> Group::split(int color, int key, const std::optional<GroupOptions>& options) const {
  return split_by(joined(state()), color, key, "split()", options);
}

std::optional<Group> Group::new_group(const std::vector<int>& ranks, const std::optional<GroupOptions>& options) const {
  std::set<int> members;
  std::string call = "new_group() of ranks";
  for (const int one : ranks) {
    if (one < 0 || one >= size() || !members.insert(one).second) {
      throw Error(
          ExitCode::usage,
          "new_group: rank " + std::to_string(one) +
              (members.contains(one) ? " is named twice" : ": this group has " + std::to_string(size()) + " ranks"));
    }
  }
  if (members.empty()) throw Error(ExitCode::usage, "new_group: the list of ranks is empty");
  for (const int member : members) call.append(" ").append(std::to_string(member));
  return split_by(joined(state()), members.contains(rank()) ? 0 : -1, 0, call, options);
}

void Group::monitored_barrier(std::optional<std::chrono::milliseconds> timeout) const {
  const auto all = joined(state());
  if (size() == 1) return;
  if (is_joining()) barrier();  // throws
  const std::string name = "monitored_barrier-" + std::to_string(all->barriers++);
  try {
    all->rendezvous.store->allgather(name, rank(), size(), "", timeout.value_or(all->ranks.timeout()));
  } catch (const Error& error) {
    if (error.code() != ExitCode::rendezvous) throw;
    throw CommError(CommStatus::timeout,
                    all->ranks.backend().name() + ": rank " + std::to_string(rank()) + ": timeout: " + error.what());
  }
}

}  // namespace ddprun
