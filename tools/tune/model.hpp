// tune: chooses how gradients are sent, from measured links and a recorded step. This file: what it chooses, and what a
// step would take with other settings. Times in seconds, sizes in bytes.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/config/experiment.hpp"
#include "tools/predict/recording.hpp"

namespace ddprun::tune {

// Keys of [comm] and [strategy], with their names.
struct Settings {
  std::string backend, algorithm;
  double bucket_cap_mb = 25;  // MiB
  std::string compression;
  bool operator==(const Settings&) const = default;
};

Settings settings_of(const config::Experiment& experiment);

// One line of a config.
struct Change {
  std::string table, key;
  std::string value;  // as TOML

  std::string override_text() const;  // for --set: "comm.algorithm=ring"
};

// The lines that change `from` into `to`, those of a table together.
std::vector<Change> changes(const Settings& from, const Settings& to);

// The lines as TOML, with the names of their tables.
std::string to_toml(const std::vector<Change>& changes);

// The measured seconds of an allreduce by its bytes, which are above 0.
using Curve = std::map<double, double>;

// A straight line between two measured sizes. Below the smallest, its time; beyond the largest, in proportion to the
// size. The curve is not empty.
double seconds_at(const Curve& curve, double bytes);

// One way to send a bucket; names as in a config.
struct Method {
  std::string backend, algorithm, compression;
  auto operator<=>(const Method&) const = default;
};

// An allreduce within a recorded step.
struct Call {
  double bytes = 0;  // sent: of compressed gradients, half of theirs
  double seconds = 0;
};

struct Basis {
  predict::StepParts parts;                // of a recorded step, without communication
  std::vector<predict::Bucket> gradients;  // each as a bucket of its own, in their order
  std::map<Method, Curve> curves;          // over the bytes that are sent
  double per_call = 0;                     // how much longer an allreduce takes within a step than in a benchmark
  // And how much longer for each byte that is sent: the casts of a compression, and cores that communication and
  // backward share. By backend and compression.
  std::map<std::pair<std::string, std::string>, double> per_byte{};

  double gradient_bytes() const;
};

// The bytes that are sent for one byte of gradients.
double sent(const std::string& compression);

// How much longer a small allreduce takes within a step than the curve says: the median over the half of the calls with
// the fewest bytes; at least 0. Requires at least one call.
double extra_per_call(std::vector<Call> calls, const Curve& curve);

// The buckets that the reducer makes of the gradients, by its own rule.
std::vector<predict::Bucket> buckets_of(const std::vector<predict::Bucket>& gradients, double bucket_cap_mb);

// The step with these settings, whose method must have a curve.
predict::Replayed expected(const Basis& basis, const Settings& settings);

// The `per_byte` of the settings' backend and compression with which the expected step takes `step`; 0 if the expected
// step is already longer without it.
double fitted_per_byte(Basis basis, const Settings& settings, double step);

// Steps that differ by at most this part count as equally fast: neither a prediction nor a comparison is more exact.
constexpr double kNoise = 0.01;

// The best settings: every method with a curve, several sizes of buckets. Of all that are at most kNoise slower than
// the fastest, those that keep `own`'s compression if there are any, and then those with the fewest changed lines: so
// `own` if nothing is faster by more than that.
Settings choose(const Basis& basis, const Settings& own);

}  // namespace ddprun::tune
