#include "choice.hpp"

#include <algorithm>

namespace ddprun::ucx_backend {
namespace {

// Measured on 2026-11-21 with `ddprun bench --tune`: float32 sums over TCP on the loopback of a machine with 2 cores.
// With 4 ranks the tree was faster up to 64 KiB, the ring from 256 KiB; with 2 ranks they were equal in between.
// Between machines the tree's extra bytes cost more, so the limit is the lower one.
constexpr char kOverUcx[] = R"(ddprun-tuning 1
ucx max 65536 tree
ucx max max ring
)";

// Fewer ranks send between hosts, and within a host shared memory costs less than UCX.
constexpr char kHierarchical[] = R"(ddprun-tuning 1
ucx max max hierarchical
)";

Tuning tuned(const Host& host, bool is_hierarchical) {
  if (host.device() < 0) return tuning_of(host, "ucx", kAlgorithms, is_hierarchical ? kHierarchical : kOverUcx);
  return tuning_of(host, "ucx", std::span(kAlgorithms).first(kOfGpus), kOverUcx);
}

}  // namespace

std::optional<Algorithm> algorithm_named(const std::string& name) {
  if (name == "hierarchical") return Algorithm::hierarchical;
  if (name == "tree") return Algorithm::tree;
  if (name == "ring") return Algorithm::ring;
  return std::nullopt;
}

Table::Table(const Tuning& tuning, int ranks) {
  for (uint64_t bytes = 0; rows_.empty() || rows_.back().first != TuningRow::kNoLimit;) {
    const auto& all = tuning.rows();
    const int most = std::min(ranks, all.back().ranks);
    const auto row = std::find_if(all.begin(), all.end(), [&](const TuningRow& candidate) {
      return candidate.ranks >= most && candidate.bytes >= bytes;
    });
    rows_.emplace_back(row->bytes, *algorithm_named(row->algorithm));
    bytes = row->bytes + 1;
  }
}

Algorithm Table::algorithm(uint64_t bytes) const {
  return std::find_if(rows_.begin(), rows_.end(), [&](const auto& row) { return row.first >= bytes; })->second;
}

bool Table::has(Algorithm algorithm) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](const auto& row) { return row.second == algorithm; });
}

Choice::Choice(const Host& host, int hosts, bool is_hierarchical)
    : tuned_memory_(host.device() < 0 ? Memory::host : Memory::cuda),
      tuned_(tuned(host, is_hierarchical), host.size()),
      over_ucx_(Tuning::parse(kOverUcx, "ucx"), host.size()),
      between_hosts_(Tuning::parse(kOverUcx, "ucx"), hosts) {}

}  // namespace ddprun::ucx_backend
