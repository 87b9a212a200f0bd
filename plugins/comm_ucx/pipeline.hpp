// Runs a collective that is given as steps. Vectors are sent in segments: while one is reduced, others are in transit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "memory_space.hpp"
#include "messages.hpp"
#include "reduction/topology.hpp"

namespace ddprun::ucx_backend {

// What a rank sends and receives in one step. Counts are in elements.
struct Step {
  static constexpr int kNoRank = -1;
  int label = 0;  // equal on both sides; distinguishes what two ranks send each other in one call
  int to = kNoRank;
  const std::byte* out = nullptr;
  uint64_t out_count = 0;
  topology::Share out_share{};  // only this share of each segment of `out`
  // Over a network, the send is complete only when the peer has begun to receive it. Otherwise this rank could send for
  // later calls without ever receiving from the peer. Equal on both sides.
  bool confirmed = false;
  int from = kNoRank;
  std::byte* in = nullptr;  // where the result goes
  uint64_t in_count = 0;
  topology::Share in_share{};       // the same of `in` and `mine`
  const std::byte* mine = nullptr;  // set: in = arrived op mine, or mine op arrived if mine_first; else in = arrived
  bool mine_first = false;
  bool at_once = false;    // `mine` has its values from the start: a segment may be added before earlier ones
  bool completes = false;  // the result is complete: Op::avg divides it
  // This step sends the memory `in`. The result is written there only after the send is complete.
  bool exchanges = false;
};

// Keeps its memory between calls. One thread.
class Pipeline {
 public:
  // The messages outlive it. Op::avg divides by `ranks`.
  Pipeline(Messages& messages, int ranks) : messages_(messages), ranks_(ranks) {}

  // `space` is of the same kind on all ranks. A step sends segment s once the last receiving step before it has
  // received and reduced segment s. All ranks give the same `longest`, the most elements that any step of any rank
  // sends. A receive without `mine` may overwrite what earlier steps send, if its data can only arrive after those
  // sends were received.
  void run(std::span<const Step> steps, MemorySpace& space, DType dtype, Op op, uint64_t longest);

 private:
  struct Cut;  // how this call's vectors are cut into segments
  void run(std::span<const Step> steps, const Cut& cut);
  bool is_immediate(const Step& step, const Cut& cut, std::size_t segment) const;
  std::size_t window(std::span<const Step> steps, const Cut& cut) const;
  void expect(std::span<const Step> steps, const Cut& cut, std::size_t item);
  void send_from(std::span<const Step> steps, const Cut& cut, std::size_t step, std::size_t segment);
  void take(const Step& step, const Cut& cut, std::size_t item, std::size_t segment);
  void add(const Step& step, const Cut& cut, std::size_t segment, const std::byte* arrived);

  Messages& messages_;
  const int ranks_;
  // An item is step * segments + segment.
  std::vector<Transfer> arrivals_;  // by item, modulo the window
  std::vector<Transfer> sends_;     // by item
};

}  // namespace ddprun::ucx_backend
