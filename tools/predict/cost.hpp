// predict: what more hosts would give, from a recorded run and measured links. This file: what an allreduce costs, as
// pure functions. Torch-free.
//
// The model is Hockney's (R. W. Hockney, "The communication challenge for MPP", Parallel Computing 20, 1994): a message
// of m bytes takes alpha + m * beta. Costs of the algorithms follow Thakur, Rabenseifner and Gropp, "Optimization of
// collective communication operations in MPICH", IJHPCA 19 (2005), and how the plugins send: in segments of up to 512
// KiB, and in both directions of a link at once. Additions are not counted separately: their time is part of beta.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::predict {

enum class Algorithm {
  ring,              // reduce-scatter and allgather round a ring
  tree,              // up and down one binomial tree: comm_gloo's "tree"
  doubling,          // recursive doubling: comm_ucx's "tree", comm_gloo's "doubling"
  halving_doubling,  // recursive halving, then doubling
  hierarchical,      // shared memory within a host; between hosts doubling up to 64 KiB, else ring
};

// The algorithm that a backend calls by this name; nothing if its cost is not known. A ring is the same in every
// backend.
std::optional<Algorithm> algorithm_of(std::string_view backend, std::string_view name);

// Hosts with equally many ranks each; ranks of a host have consecutive numbers. Both at least 1.
struct Shape {
  int64_t hosts = 1;
  int64_t per_host = 1;
  int64_t ranks() const { return hosts * per_host; }
};

// What happens one after another in an allreduce: messages between hosts, and bytes that pass the busiest link of a
// host in one direction.
struct Path {
  double messages = 0;
  double bytes = 0;
};

// The path of an allreduce of `bytes` between hosts; zero for one host. Not for hierarchical, which has two levels.
// With several ranks on a host, the time within the host is not included, except for the ring, which overlaps it.
Path path_between(Algorithm algorithm, Shape shape, double bytes);

// Whether a benchmark, whose calls follow each other without a pause, shows the time of a single call: if all hosts do
// the same. Otherwise one host begins the next call while others still have to end this one.
bool shows_single_calls(Algorithm algorithm, int64_t hosts);

// How far a measured time is from the line of its link: line / measured - 1, for messages of so many bytes.
struct Misfit {
  double message = 0;
  double error = 0;
};

// alpha: seconds for each message; beta: seconds for each byte. Neither is negative.
struct Link {
  double alpha = 0;
  double beta = 0;
  std::vector<Misfit> misfits{};
  double seconds(Path path) const { return path.messages * alpha + path.bytes * beta; }
  // The same, corrected by the median of the misfits of messages of about this size: between a quarter of it and 4
  // times it. If there is none, by that of the nearest size.
  double corrected_seconds(Path path) const;
};

// The links of one backend, as each algorithm uses them.
struct Links {
  std::map<Algorithm, Link> between;  // hosts; for hierarchical: those of doubling and ring
  std::map<Algorithm, Link> within;   // an allreduce of all ranks of a host is one message
};

// Whether the links suffice for allreduce_seconds().
bool covers(const Links& links, Algorithm algorithm, Shape shape);

// The time of an allreduce in seconds; 0 for one rank. Requires covers().
double allreduce_seconds(const Links& links, Algorithm algorithm, Shape shape, double bytes);

// The time in which the ranks compare a call before it, if they are on several hosts (comm.check): an allgather of 32
// bytes of each rank round a ring. 0 for one host. Requires covers().
double check_seconds(const Links& links, Algorithm algorithm, Shape shape);

}  // namespace ddprun::predict
