#include "launch/cores.hpp"

#include <sched.h>

#include <algorithm>

#include "ddprun/plugin/host_identity.hpp"

namespace ddprun::launch {
namespace {

bool overlap(const std::string& a, const std::string& b) {
  for (std::size_t core = 0; core < std::min(a.size(), b.size()); ++core) {
    if (a[core] == '1' && b[core] == '1') return true;
  }
  return false;
}

}  // namespace

std::string core_mask() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::string mask;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return mask;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) mask += CPU_ISSET(core, &set) ? '1' : '0';
  mask.erase(mask.find_last_of('1') + 1);
  return mask;
}

int cores_of_rank(const std::vector<std::string>& masks, std::size_t mine) {
  const std::string& own = masks.at(mine);
  if (own.empty()) return 0;
  const auto cores = std::count(own.begin(), own.end(), '1');
  const auto ranks = std::count_if(masks.begin(), masks.end(), [&](const auto& mask) { return overlap(mask, own); });
  return static_cast<int>(std::max<std::ptrdiff_t>(1, cores / std::max<std::ptrdiff_t>(1, ranks)));
}

int threads_of_rank(const World& world) {
  if (world.cores > 0) return world.cores;
  return std::max(1, usable_cores() / std::max(1, world.local_size));
}

bool fill_cores(int64_t ranks, int64_t threads, int64_t cores) {
  if (threads == 0) threads = std::max<int64_t>(1, cores / std::max<int64_t>(1, ranks));
  return threads > 1 && ranks * threads >= cores;
}

void share_cores(World& world, Store& store, std::chrono::milliseconds timeout) {
  const std::string host = host_identity() + " ", mask = core_mask();
  std::vector<std::string> masks;
  std::size_t mine = 0;
  const auto all = store.allgather("cores", world.rank, world.size, host + mask, timeout);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (rank == static_cast<std::size_t>(world.rank)) mine = masks.size();
    if (all[rank].starts_with(host)) masks.push_back(all[rank].substr(host.size()));
  }
  // If each rank of this host is in a container of its own, the masks of the others are not known.
  if (const auto ranks = static_cast<std::size_t>(world.local_size); masks.size() != ranks) {
    masks.assign(ranks, mask);
    mine = 0;
  }
  world.cores = cores_of_rank(masks, mine);
}

}  // namespace ddprun::launch
