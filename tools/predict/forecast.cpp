#include "tools/predict/forecast.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "ddprun/error.hpp"
#include "ddprun/plugin/words.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::predict {
namespace {

constexpr int kDraws = 1000;
constexpr uint64_t kSeed = 1;
constexpr double kLow = 0.025, kHigh = 0.975;

// What a prediction is made of: the medians, or one draw.
struct Basis {
  StepParts parts;
  std::map<std::string, Links> links;  // by backend
};

using Random = std::mt19937_64;

template <class Value>
const Value& any_of(const std::vector<Value>& values, Random& random) {
  return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
}

class Forecaster {
 public:
  explicit Forecaster(Forecast& forecast) : forecast_(forecast) {
    for (const FittedLink& link : forecast.links) backends_.insert(link.backend);
    forecast.typical = typical_of(forecast.recording.steps);
    typical_.parts = forecast.typical;
    for (const std::string& backend : backends_) {
      typical_.links[backend] = links_of(forecast.links, backend, [](const FittedLink& one) { return one.link; });
    }
  }

  void find_methods(int64_t per_host, const std::vector<std::string>& wanted) {
    const Shape smallest = {2, per_host};
    for (const auto& [backend, name, algorithm] : candidates(per_host)) {
      if (!wanted.empty() && std::ranges::count(wanted, name) == 0) continue;
      if (covers(typical_.links.at(backend), algorithm, smallest)) {
        forecast_.methods.push_back({backend, name, algorithm, {}, {}});
      } else {
        forecast_.left_out.push_back(backend + " " + name + ": " + missing(backend, algorithm, per_host));
      }
    }
    for (const std::string& name : wanted) require(name);
    if (forecast_.methods.empty()) throw Error(ExitCode::usage, forecast_.left_out.at(0));
  }

  void predict(Method& method, Shape shape, const std::vector<Basis>& draws) const {
    if (!covers(typical_.links.at(method.backend), method.algorithm, shape)) return;
    Predicted row = predicted(method, shape, typical_);
    const auto drawn = tools::each(draws, [&](const Basis& draw) { return predicted(method, shape, draw); });
    for (const auto member : {&Predicted::step, &Predicted::exposed, &Predicted::throughput, &Predicted::efficiency}) {
      const auto values = tools::each(drawn, [&](const Predicted& one) { return (one.*member).value; });
      (row.*member).low = tools::quantile(values, kLow);
      (row.*member).high = tools::quantile(values, kHigh);
    }
    method.rows.push_back(row);
    consider(method, shape);
  }

  Basis draw(Random& random) const {
    Basis basis;
    basis.parts = any_of(forecast_.recording.steps, random);
    const auto redrawn = [&](const FittedLink& one) {
      Link link = one.refitted([&](const BenchRow& row) { return any_of(row.rounds, random); });
      link.quantile = std::uniform_real_distribution<double>(0, 1)(random);
      return link;
    };
    for (const std::string& backend : backends_) basis.links[backend] = links_of(forecast_.links, backend, redrawn);
    return basis;
  }

 private:
  struct Candidate {
    std::string backend, name;
    Algorithm algorithm;
  };

  // Hierarchical has its own links within a host only.
  std::vector<Candidate> candidates(int64_t per_host) const {
    std::vector<Candidate> all;
    for (const FittedLink& link : forecast_.links) {
      if (!link.is_within) all.push_back({link.backend, link.name, link.algorithm});
    }
    for (const char* backend : {"gloo", "ucx"}) {
      if (per_host > 1 && backends_.contains(backend))
        all.push_back({backend, "hierarchical", Algorithm::hierarchical});
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

  void require(const std::string& name) const {
    if (std::ranges::count(forecast_.methods, name, &Method::name) > 0) return;
    std::vector<std::string> names;
    for (const FittedLink& link : forecast_.links) {
      if (!link.is_within) names.push_back(link.name);
    }
    const std::string place = "--algorithm " + name + ": ";
    for (const std::string& reason : forecast_.left_out) {
      if (reason.find(" " + name + ": ") != std::string::npos) throw Error(ExitCode::usage, place + reason);
    }
    throw Error(ExitCode::usage, place + "the files of --bench have no such rows" + did_you_mean(name, names));
  }

  Replayed replayed(const Method& method, Shape shape, const Basis& basis, const StepParts& parts) const {
    const Links& links = basis.links.at(method.backend);
    const double check = forecast_.recording.is_checked ? check_seconds(links, method.algorithm, shape) : 0;
    const std::vector<Bucket>& buckets = forecast_.recording.buckets;
    const auto seconds = tools::each(buckets, [&](const Bucket& bucket) {
      return check + allreduce_seconds(links, method.algorithm, shape, bucket.bytes);
    });
    return replay(parts, buckets, seconds);
  }

  // Values only.
  Predicted predicted(const Method& method, Shape shape, const Basis& basis) const {
    const Replayed step = replayed(method, shape, basis, basis.parts);
    const auto ranks = static_cast<double>(shape.ranks());
    Predicted row;
    row.shape = shape;
    row.step.value = step.step;
    row.exposed.value = step.exposed;
    row.throughput.value = ranks * forecast_.recording.samples / step.step;
    row.efficiency.value = basis.parts.total() / step.step;
    return row;
  }

  void consider(Method& method, Shape shape) const {
    const auto ranks = static_cast<double>(shape.ranks());
    if (ranks > forecast_.recording.samples) return;
    StepParts parts = typical_.parts;
    parts.forward /= ranks;
    parts.backward /= ranks;
    const double times = typical_.parts.total() / replayed(method, shape, typical_, parts).step;
    if (times > method.best.times) method.best = {times, shape.ranks()};
  }

  Forecast& forecast_;
  std::set<std::string> backends_;
  Basis typical_;
};

}  // namespace

Forecast forecast(Recording recording, std::vector<FittedLink> links, const std::vector<int64_t>& hosts,
                  int64_t per_host, const std::vector<std::string>& algorithms) {
  Forecast made;
  made.recording = std::move(recording);
  made.links = std::move(links);
  Forecaster forecaster(made);
  forecaster.find_methods(per_host, algorithms);
  Random random(kSeed);
  std::vector<Basis> draws;
  for (int i = 0; i < kDraws; ++i) draws.push_back(forecaster.draw(random));
  for (Method& method : made.methods) {
    forecaster.predict(method, {1, 1}, draws);
    for (const int64_t number : hosts) {
      if (number * per_host > 1) forecaster.predict(method, {number, per_host}, draws);
    }
  }
  return made;
}

}  // namespace ddprun::predict
