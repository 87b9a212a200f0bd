// The prediction: the recorded step on other numbers of hosts, with every algorithm.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/predict/links.hpp"
#include "tools/predict/recording.hpp"

namespace ddprun::predict {

// Each rank has as many samples as a rank of the recorded run.
struct Predicted {
  Shape shape;
  double step = 0;        // seconds
  double exposed = 0;     // seconds
  double throughput = 0;  // samples per second, all ranks
  double efficiency = 0;  // throughput / (ranks * throughput of one rank)
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

// `hosts`: numbers of hosts, with `per_host` ranks each; one rank always comes first. The prediction comes from
// medians: of the parts of a step, and of the rows of the benchmarks. Throws Error(usage) if no algorithm is covered.
Forecast forecast(Recording recording, std::vector<FittedLink> links, const std::vector<int64_t>& hosts,
                  int64_t per_host);

// For the terminal: the links, a table for each method, Amdahl's limit.
std::string text(const Forecast& forecast);

// docs/predicting.md describes it. Times in seconds, sizes in bytes.
std::string to_json(const Forecast& forecast, const std::vector<std::string>& command);

}  // namespace ddprun::predict
