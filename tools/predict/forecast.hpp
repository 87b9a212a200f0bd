// The prediction: the recorded step on other numbers of hosts, with every algorithm.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/predict/links.hpp"
#include "tools/predict/recording.hpp"
#include "tools/report/page.hpp"

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

// The speed-up of a step if `ranks` ranks divide the samples of one rank's step among them.
struct SpeedUp {
  double times = 1;  // as fast as one rank
  int64_t ranks = 1;
};

struct Method {
  std::string backend, name;  // name: the algorithm
  Algorithm algorithm = Algorithm::ring;
  std::vector<Predicted> rows;
  SpeedUp best;  // of the rows with at least one sample for each rank; 1 rank if none is faster

  std::string text() const { return backend + " " + name; }
};

struct Forecast {
  Recording recording;
  std::vector<FittedLink> links;
  StepParts typical;  // the median step
  std::vector<Method> methods;
  std::vector<std::string> left_out;  // methods, with the reason
  // Amdahl: the part of a step of one rank that more ranks do not make shorter: the optimizer.
  double serial() const { return typical.optimizer / typical.total(); }
  // The speed-up of a step with one sample on each rank, without communication. Requires recording.samples above 0.
  double limit() const { return 1 / (serial() + (1 - serial()) / recording.samples); }
};

// `hosts`: numbers of hosts, with `per_host` ranks each; one rank always comes first. `algorithms`: only these, by
// name; empty: all that the links cover. The value of an interval comes from medians: of the parts of a step, and of
// the rows of the benchmarks. For each draw, one recorded step, one round of each row, and for each method one error of
// the fit are chosen at random, with a fixed seed. Throws Error(usage) if no backend covers an algorithm of
// `algorithms`, or if no algorithm is covered at all.
Forecast forecast(Recording recording, std::vector<FittedLink> links, const std::vector<int64_t>& hosts,
                  int64_t per_host, const std::vector<std::string>& algorithms);

// For the terminal: the links, a table for each method, Amdahl's limit.
std::string text(const Forecast& forecast);

// docs/predicting.md describes it. Times in seconds, sizes in bytes.
std::string to_json(const Forecast& forecast, const std::vector<std::string>& command);

// Efficiency and time of a step over ranks and time of an allreduce over sizes, with a line for each method, and the
// tables of text().
report::Page page(const Forecast& forecast);

}  // namespace ddprun::predict
