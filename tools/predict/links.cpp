#include "tools/predict/links.hpp"

#include <algorithm>

#include "ddprun/error.hpp"
#include "tools/predict/fit.hpp"

namespace ddprun::predict {
namespace {

Path path_of(const FittedLink& fitted, const BenchRow& row) {
  return fitted.is_within ? Path{1, row.bytes} : path_between(fitted.algorithm, row.shape, row.bytes);
}

std::vector<Measured> measured(const FittedLink& fitted, const std::function<double(const BenchRow&)>& seconds_of) {
  std::vector<Measured> all;
  for (const BenchRow& row : fitted.rows) all.push_back({path_of(fitted, row), seconds_of(row)});
  return all;
}

double median_of(const BenchRow& row) {
  return row.seconds;
}

// What the row says about a link; no rows in it yet.
std::optional<FittedLink> kind_of(const BenchRow& row, int64_t per_host) {
  const bool is_within = row.shape.hosts == 1;
  if (is_within && row.shape.per_host != per_host) return std::nullopt;
  if (is_within && row.backend == "shm")
    return FittedLink{"shm", "hierarchical", Algorithm::hierarchical, true, {}, {}};
  const auto algorithm = algorithm_of(row.backend, row.algorithm);
  if (!algorithm) return std::nullopt;
  if (!is_within && (algorithm == Algorithm::hierarchical || !shows_single_calls(*algorithm, row.shape.hosts))) {
    return std::nullopt;
  }
  return FittedLink{row.backend, row.algorithm, *algorithm, is_within, {}, {}};
}

void fit_one(FittedLink& fitted) {
  const auto times = measured(fitted, median_of);
  const auto refuse = [&](const std::string& reason) { throw Error(ExitCode::usage, fitted.text() + ": " + reason); };
  if (!is_determined(times)) {
    refuse("the measured sizes cannot separate latency from bandwidth; measure several, such as --sizes 4K,64K,1M,4M");
  }
  fitted.link = fit(times);
  if (fitted.link.beta == 0) refuse("the time does not grow with the size; measure larger vectors too");
}

}  // namespace

std::string FittedLink::text() const {
  return (backend == "shm" ? backend : backend + " " + name) + (is_within ? " within a host" : " between hosts");
}

Link FittedLink::refitted(const std::function<double(const BenchRow&)>& seconds_of) const {
  return fit(measured(*this, seconds_of));
}

std::vector<FittedLink> fit_links(const std::vector<BenchRow>& rows, int64_t per_host) {
  std::vector<FittedLink> all;
  for (const BenchRow& row : rows) {
    const auto kind = kind_of(row, per_host);
    if (!kind) continue;
    const auto same = [&](const FittedLink& other) { return other.text() == kind->text(); };
    auto place = std::find_if(all.begin(), all.end(), same);
    if (place == all.end()) place = all.insert(all.end(), *kind);
    place->rows.push_back(row);
  }
  const auto is_between = [](const FittedLink& fitted) { return !fitted.is_within; };
  if (std::none_of(all.begin(), all.end(), is_between)) {
    throw Error(
        ExitCode::usage,
        "no file of --bench has an algorithm between hosts whose cost is known (ring; tree, halving_doubling and "
        "doubling of gloo; tree of ucx); start `ddprun bench --nnodes 2 ...` on two hosts");
  }
  for (FittedLink& fitted : all) fit_one(fitted);
  return all;
}

Links links_of(const std::vector<FittedLink>& fitted, const std::string& backend,
               const std::function<Link(const FittedLink&)>& link_of) {
  Links links;
  for (const FittedLink& one : fitted) {
    if (one.backend == backend || one.backend == "shm")
      (one.is_within ? links.within : links.between)[one.algorithm] = link_of(one);
  }
  return links;
}

}  // namespace ddprun::predict
