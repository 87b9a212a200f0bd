#include "tools/predict/forecast.hpp"

#include <map>

#include "ddprun/error.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::predict {
namespace {

class Forecaster {
 public:
  explicit Forecaster(Forecast& forecast) : forecast_(forecast) {
    forecast.typical = typical_of(forecast.recording.steps);
    for (const FittedLink& link : forecast.links) links_[link.backend] = links_of(forecast.links, link.backend);
  }

  void find_methods(int64_t per_host) {
    const Shape smallest = {2, per_host};
    for (const Method& one : candidates(per_host)) {
      if (covers(links_.at(one.backend), one.algorithm, smallest)) {
        forecast_.methods.push_back(one);
      } else {
        forecast_.left_out.push_back(one.text() + ": " + missing(one.backend, one.algorithm, per_host));
      }
    }
    if (forecast_.methods.empty()) throw Error(ExitCode::usage, forecast_.left_out.at(0));
  }

  void predict(Method& method, Shape shape) const {
    if (!covers(links_.at(method.backend), method.algorithm, shape)) return;
    const Replayed step = replayed(method, shape, forecast_.typical);
    const auto ranks = static_cast<double>(shape.ranks());
    method.rows.push_back({.shape = shape,
                           .step = step.step,
                           .exposed = step.exposed,
                           .throughput = ranks * forecast_.recording.samples / step.step,
                           .efficiency = forecast_.typical.total() / step.step});
    consider(method, shape);
  }

 private:
  // Hierarchical has its own links within a host only.
  std::vector<Method> candidates(int64_t per_host) const {
    std::vector<Method> all;
    for (const FittedLink& link : forecast_.links) {
      if (!link.is_within) all.push_back({link.backend, link.name, link.algorithm, {}, {}});
    }
    for (const char* backend : {"gloo", "ucx"}) {
      if (per_host > 1 && links_.contains(backend))
        all.push_back({backend, "hierarchical", Algorithm::hierarchical, {}, {}});
    }
    return all;
  }

  static std::string missing(const std::string& backend, Algorithm algorithm, int64_t per_host) {
    const std::string ranks = std::to_string(per_host) + " ranks on one host";
    return algorithm == Algorithm::hierarchical
               ? "needs ring and " + std::string(backend == "ucx" ? "tree" : "doubling") + " of " + backend +
                     " between hosts, and shm with " + ranks
               : "needs a benchmark of it with " + ranks + " (--backend " + backend + " --ranks " +
                     std::to_string(per_host) + ")";
  }

  Replayed replayed(const Method& method, Shape shape, const StepParts& parts) const {
    const Links& links = links_.at(method.backend);
    const double check = forecast_.recording.is_checked ? check_seconds(links, method.algorithm, shape) : 0;
    const std::vector<Bucket>& buckets = forecast_.recording.buckets;
    const auto seconds = tools::each(buckets, [&](const Bucket& bucket) {
      return check + allreduce_seconds(links, method.algorithm, shape, bucket.bytes);
    });
    return replay(parts, buckets, seconds);
  }

  void consider(Method& method, Shape shape) const {
    const auto ranks = static_cast<double>(shape.ranks());
    if (ranks > forecast_.recording.samples) return;
    StepParts parts = forecast_.typical;
    parts.forward /= ranks;
    parts.backward /= ranks;
    const double times = forecast_.typical.total() / replayed(method, shape, parts).step;
    if (times > method.best.times) method.best = {times, shape.ranks()};
  }

  Forecast& forecast_;
  std::map<std::string, Links> links_;  // by backend
};

}  // namespace

Forecast forecast(Recording recording, std::vector<FittedLink> links, const std::vector<int64_t>& hosts,
                  int64_t per_host) {
  Forecast made;
  made.recording = std::move(recording);
  made.links = std::move(links);
  Forecaster forecaster(made);
  forecaster.find_methods(per_host);
  for (Method& method : made.methods) {
    forecaster.predict(method, {1, 1});
    for (const int64_t number : hosts) {
      if (number * per_host > 1) forecaster.predict(method, {number, per_host});
    }
  }
  return made;
}

}  // namespace ddprun::predict
