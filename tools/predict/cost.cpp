#include "tools/predict/cost.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "tools/lib/statistics.hpp"

namespace ddprun::predict {
namespace {

constexpr double kSegment = 512 * 1024;  // bytes: longer vectors are sent in segments; those of ucx are half as long
constexpr double kPart = 4 << 20;        // of hierarchical: while one is sent, the host reduces the next one
constexpr double kLargestOfDoubling = 64 * 1024;
constexpr double kFingerprint = 32;   // bytes
constexpr double kLargest = 1 << 30;  // bytes

double floor_log2(int64_t n) {
  return std::bit_width(static_cast<uint64_t>(n)) - 1;
}

double ceil_log2(int64_t n) {
  return std::bit_width(static_cast<uint64_t>(n - 1));
}

double segment_of(double bytes) {
  return bytes / std::max(1.0, std::ceil(bytes / kSegment));
}

Path operator+(Path a, Path b) {
  return {a.messages + b.messages, a.bytes + b.bytes};
}

// The ring passes each link between two hosts once in a step, in each direction, whatever the number of ranks there.
Path ring(double ranks, double bytes) {
  return {2 * (ranks - 1), 2 * (ranks - 1) / ranks * bytes};
}

// How many messages pass one link after another until a segment has come from the root to all. Connections to several
// children share the link of their parent, so all of them end together.
double way_down(int64_t hosts) {
  double children = 0, below = 0;
  for (int64_t bit = 1; bit < hosts; bit *= 2) {
    ++children;
    below = std::max(below, way_down(std::min(bit, hosts - bit)));
  }
  return children + below;
}

// All segments pass the link of the root once for each of its children, up and down at the same time; then the last
// segment still has to go down.
Path tree(int64_t hosts, double bytes) {
  const double rounds = ceil_log2(hosts);
  return {2 * rounds, rounds * bytes + way_down(hosts) * segment_of(bytes)};
}

// Hosts beyond the power of two give their vector to another one first, and get the result last. The link of that one
// then carries two vectors more. Also, two hosts send to it at once, so that its first segment takes twice as long.
Path doubling(int64_t hosts, int64_t per_host, double bytes) {
  const double rounds = floor_log2(hosts);
  const Path exchange = {rounds, rounds * bytes};
  const bool is_power = std::has_single_bit(static_cast<uint64_t>(hosts));
  const Path all = is_power ? exchange : exchange + Path{2, 2 * bytes + segment_of(bytes)};
  return {all.messages, all.bytes * static_cast<double>(per_host)};  // all ranks of a host exchange at once
}

// As above, but the exchange begins when the whole vector is there, and no other host sends meanwhile.
Path halving_doubling(int64_t hosts, double bytes) {
  const double rounds = floor_log2(hosts), core = std::exp2(rounds);
  const Path exchange = {2 * rounds, 2 * (core - 1) / core * bytes};
  return std::has_single_bit(static_cast<uint64_t>(hosts)) ? exchange : exchange + Path{2, 2 * bytes};
}

// What a hierarchical allreduce uses between hosts.
Algorithm between_of(Algorithm algorithm, double bytes) {
  if (algorithm != Algorithm::hierarchical) return algorithm;
  return bytes <= kLargestOfDoubling ? Algorithm::doubling : Algorithm::ring;
}

bool works_within(Algorithm algorithm, Shape shape) {
  return shape.per_host > 1 && (shape.hosts == 1 || algorithm != Algorithm::ring);
}

}  // namespace

std::optional<Algorithm> algorithm_of(std::string_view backend, std::string_view name) {
  const bool is_either = backend == "gloo" || backend == "ucx";
  if (name == "ring") return Algorithm::ring;
  if (backend == "gloo" && name == "tree") return Algorithm::tree;
  if (is_either && name == "halving_doubling") return Algorithm::halving_doubling;
  if (backend == "gloo" && name == "doubling") return Algorithm::doubling;
  if (backend == "ucx" && name == "tree") return Algorithm::doubling;
  if (is_either && name == "hierarchical") return Algorithm::hierarchical;
  return std::nullopt;
}

Path path_between(Algorithm algorithm, Shape shape, double bytes) {
  if (shape.hosts == 1) return {};
  switch (algorithm) {
    case Algorithm::ring: return ring(static_cast<double>(shape.ranks()), bytes);
    case Algorithm::tree: return tree(shape.hosts, bytes);
    case Algorithm::doubling: return doubling(shape.hosts, shape.per_host, bytes);
    case Algorithm::halving_doubling: return halving_doubling(shape.hosts, bytes);
    case Algorithm::hierarchical: break;
  }
  return {};
}

bool shows_single_calls(Algorithm algorithm, int64_t hosts) {
  switch (algorithm) {
    case Algorithm::ring: return true;
    case Algorithm::tree: return hosts == 2;
    default: return std::has_single_bit(static_cast<uint64_t>(hosts));
  }
}

bool covers(const Links& links, Algorithm algorithm, Shape shape) {
  const auto has = [&](double bytes) { return links.between.contains(between_of(algorithm, bytes)); };
  if (shape.hosts > 1 && !(has(1) && has(kLargest))) return false;
  return !works_within(algorithm, shape) || links.within.contains(algorithm);
}

double Link::corrected_seconds(Path path) const {
  if (misfits.empty()) return seconds(path);
  const auto distance = [message = path.bytes / path.messages](const Misfit& misfit) {
    return std::abs(std::log(misfit.message / message));
  };
  double limit = distance(misfits.front());
  for (const Misfit& misfit : misfits) limit = std::min(limit, distance(misfit));
  limit = std::max(limit, std::log(4));
  std::vector<double> near;
  for (const Misfit& misfit : misfits) {
    if (distance(misfit) <= limit) near.push_back(misfit.error);
  }
  return seconds(path) / (1 + tools::median(std::move(near)));
}

double allreduce_seconds(const Links& links, Algorithm algorithm, Shape shape, double bytes) {
  const auto within = [&](double part) {
    return works_within(algorithm, shape) ? links.within.at(algorithm).corrected_seconds({1, part}) : 0;
  };
  if (shape.hosts == 1) return within(bytes);
  const Algorithm used = between_of(algorithm, bytes);
  const bool by_leaders = algorithm == Algorithm::hierarchical, overlaps = by_leaders && bytes > kPart;
  const Path path = path_between(used, by_leaders ? Shape{shape.hosts, 1} : shape, bytes);
  const double between = links.between.at(used).corrected_seconds(path);
  return overlaps ? within(kPart) + std::max(between, within(bytes - kPart)) : within(bytes) + between;
}

double check_seconds(const Links& links, Algorithm algorithm, Shape shape) {
  if (shape.hosts == 1) return 0;
  const auto others = static_cast<double>(shape.ranks() - 1);
  return links.between.at(between_of(algorithm, kFingerprint)).corrected_seconds({others, others * kFingerprint});
}

}  // namespace ddprun::predict
