#include "host_space.hpp"

#include <cstring>

#include "reduction/reduce.hpp"

namespace ddprun::ucx_backend {
namespace {

constexpr std::size_t kSegmentBytes = 512 * 1024;

}  // namespace

HostSpace::HostSpace() : slots_(std::make_unique_for_overwrite<std::byte[]>(kWindow * kSegmentBytes)) {}

std::size_t HostSpace::segment_bytes() const noexcept {
  return kSegmentBytes;
}

void HostSpace::reduce(const Reduction& how, void* to, const void* a, const void* b, std::size_t count) {
  reduction::reduce_function(how.dtype, how.op)(to, a, b, count);
  if (how.ranks > 1) reduction::divide(to, how.dtype, count, how.ranks);
}

void HostSpace::copy(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

}  // namespace ddprun::ucx_backend
