// The prediction: the recorded step on other numbers of hosts, with every algorithm.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/predict/links.hpp"
#include "tools/predict/recording.hpp"

namespace ddprun::predict {

// `low` .. `high` holds 95 % of 1,000 draws.
struct Interval {
  double value = 0, low = 0, high = 0;
};

// Each rank has as many samples as a rank of the recorded run.
struct Predicted {
  Shape shape;
  Interval step;        // seconds
  Interval exposed;     // seconds
  Interval throughput;  // samples per second, all ranks
  Interval efficiency;  // throughput / (ranks * throughput of one rank)
};

// How much faster a step gets if the samples of one rank's step are divided among the ranks.
struct SpeedUp {
  double times = 1;
  int64_t ranks = 1;
};

struct Method {
  std::string backend, name;  // name: the algorithm
  Algorithm algorithm = Algorithm::ring;
  std::vector<Predicted> rows;
  SpeedUp best;  // of the rows with at least one sample for each rank

  std::string text() const { return backend + " " + name; }
};

// From which size of a vector the ring is faster than the tree of the same backend; nothing if one always is.
struct Crossing {
  std::string backend, tree;
  Shape shape;
  std::optional<double> bytes;
};

struct Forecast {
  Recording recording;
  std::vector<FittedLink> links;
  StepParts typical;  // the median step
  std::vector<Method> methods;
  std::vector<Crossing> crossings;
  std::vector<std::string> left_out;  // methods, with the reason
  // Amdahl: the part of a step of one rank that more ranks do not make shorter: the optimizer.
  double serial() const { return typical.optimizer / typical.total(); }
};

// `hosts`: numbers of hosts, with `per_host` ranks each; one rank comes first anyway. `algorithms`: only these, by
// name; empty: all that the links cover. The value of an interval comes from medians: of the parts of a step, and of
// the rows of benchmarks. For each draw, one recorded step, one round of each row, and one error of the fit are chosen
// at random, with a fixed seed. Throws Error(usage) if an algorithm of `algorithms` is not covered, or none at
// all.
Forecast forecast(Recording recording, std::vector<FittedLink> links, const std::vector<int64_t>& hosts,
                  int64_t per_host, const std::vector<std::string>& algorithms);

}  // namespace ddprun::predict
