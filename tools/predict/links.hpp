// The links that a prediction is based on: fitted to the rows of benchmarks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/predict/bench_rows.hpp"
#include "tools/predict/cost.hpp"

namespace ddprun::predict {

// One algorithm of one backend, between hosts or within a host.
struct FittedLink {
  std::string backend;
  std::string name;  // of the algorithm, as the backend calls it
  Algorithm algorithm = Algorithm::ring;
  bool is_within = false;
  std::vector<BenchRow> rows;
  Link link;  // with a misfit for each row

  // "gloo ring between hosts"
  std::string text() const;
  // Fitted to other times of the rows: seconds_of(row).
  Link refitted(const std::function<double(const BenchRow&)>& seconds_of) const;
};

// Rows between hosts, and rows within a host of exactly `per_host` ranks. Rows of shm are those of hierarchical within
// a host, for all backends. Rows of an algorithm whose cost is not known are left out, and rows that do not show the
// time of a single call (shows_single_calls()). Throws Error(usage) if no row is between hosts, if the rows of an
// algorithm cannot separate its latency from its bandwidth, or if its time does not grow with the size (beta is 0).
std::vector<FittedLink> fit_links(const std::vector<BenchRow>& rows, int64_t per_host);

// The links of one backend, with link_of() of each.
Links links_of(const std::vector<FittedLink>& fitted, const std::string& backend,
               const std::function<Link(const FittedLink&)>& link_of);

}  // namespace ddprun::predict
