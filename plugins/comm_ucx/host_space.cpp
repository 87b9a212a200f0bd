#include "memory_space.hpp"

#include <cstring>

#include "reduction/reduce.hpp"

namespace ddprun::ucx_backend {
namespace {

constexpr std::size_t kSharedSegment = 512 * 1024;
// With the segment size of context.cpp, UCX sends this many bytes over TCP as one message, without a copy.
constexpr std::size_t kSentSegment = 256 * 1024;

}  // namespace

HostSpace::HostSpace(bool by_memory)
    : segment_bytes_(by_memory ? kSharedSegment : kSentSegment),
      slots_(std::make_unique_for_overwrite<std::byte[]>(kWindow * segment_bytes_)) {}

void HostSpace::reduce(const Reduction& how, void* to, const void* a, const void* b, std::size_t count) {
  reduction::reduce_function(how.dtype, how.op)(to, a, b, count);
  if (how.ranks > 1) reduction::divide(to, how.dtype, count, how.ranks);
}

void HostSpace::copy(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

}  // namespace ddprun::ucx_backend
