// Runs a collective that is written down as steps. Vectors go in segments: while one is reduced, others are on their
// way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "memory_space.hpp"
#include "messages.hpp"

namespace ddprun::ucx_backend {

// What a rank sends and receives at a time. Counts are in elements.
struct Step {
  static constexpr int kNobody = -1;
  int label = 0;  // equal on both sides; distinguishes what two ranks send each other in one call
  int to = kNobody;
  const std::byte* out = nullptr;
  uint64_t out_count = 0;
  bool confirmed = false;  // this rank could go on sending for calls to come without ever hearing of `to`
  int from = kNobody;
  std::byte* in = nullptr;  // where the result of what arrives goes
  uint64_t in_count = 0;
  const std::byte* mine = nullptr;  // set: in = arrived op mine, or mine op arrived if mine_first; else in = arrived
  bool mine_first = false;
  bool completes = false;  // the result is complete: Op::avg divides it
  // `in` is what this step sends: it is written only when the sending is over.
  bool exchanges = false;
};

// Keeps its memory from call to call. One thread.
class Pipeline {
 public:
  // The messages outlive it. Op::avg divides by `ranks`.
  Pipeline(Messages& messages, int ranks);

  // Of vectors in `space`, which is of the same kind on all ranks.
  // Segment s of a step is sent once segment s of the last step before it that receives has been received and reduced.
  // All ranks of a collective give the same `longest`, the largest count of any step of any rank. A receive without
  // `mine` may lie where earlier steps send from, if what arrives can only be there after those have been received.
  void run(std::span<const Step> steps, MemorySpace& space, DType dtype, Op op, uint64_t longest);

 private:
  struct Cut;  // of this call's vectors into segments
  void expect(std::span<const Step> steps, const Cut& cut, std::size_t item);
  void send_from(std::span<const Step> steps, const Cut& cut, std::size_t step, std::size_t segment);
  void take(const Step& step, const Cut& cut, std::size_t item, std::size_t segment);

  Messages& messages_;
  const int ranks_;
  std::vector<Transfer> arrivals_;  // by item, modulo the window
  std::vector<Transfer> sends_;     // by item: step * segments + segment
};

}  // namespace ddprun::ucx_backend
