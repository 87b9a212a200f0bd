// Where the buffers of a rank are: in the host's memory, or on a GPU, of which the host then has an image that is
// filled and looked at.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "cuda/runtime.hpp"
#include "ddprun/comm_backend.hpp"

namespace ddprun::conformance {

// Of one thread, because a CUDA stream that two communicators share would make each wait for the other.
class Place {
 public:
  // On the GPU `device`, CUDA's ordinal; -1: in host memory. Throws Error.
  explicit Place(int device);

  // For a backend; the buffers come from an Image or from CommBackend::allocate.
  Collective call(const void* send, void* recv, std::size_t count, DType dtype, Op op = Op::sum) const;
  // Between the host and memory that a backend is given. get() first waits for what the stream holds.
  void put(void* memory, const void* host, std::size_t bytes) const;
  void get(void* host, const void* memory, std::size_t bytes) const;

  // On a GPU: records what `work` gives to this place's stream as a CUDA graph, and queues such a graph there.
  std::shared_ptr<void> capture(const std::function<void()>& work) const { return gpu_->capture(stream_.get(), work); }
  void replay(const std::shared_ptr<void>& graph) const { gpu_->replay(graph.get(), stream_.get()); }

 private:
  friend class Image;
  std::shared_ptr<void> allocate(std::size_t bytes) const;

  std::optional<cuda::Runtime> gpu_;
  std::shared_ptr<void> stream_;
  // Kept for the next one, by size: giving memory back would wait for all that is on the GPU, the collectives of
  // another communicator included, and those for a rank that waits likewise.
  using Pool = std::multimap<std::size_t, std::shared_ptr<void>>;
  std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();
};

// Memory that stands for a piece of the host's in calls of a backend: that piece itself, or as much on the GPU, as far
// from a cache line. The piece and the place outlive it.
class Image {
 public:
  Image(const Place& place, void* host, std::size_t bytes);

  // What a backend is given for this address of the piece.
  void* at(const void* host) const;
  // Makes the image equal the piece, and the piece equal the image.
  void put() const { place_.put(at(host_), host_, bytes_); }
  void get() const { place_.get(host_, at(host_), bytes_); }

 private:
  const Place& place_;
  unsigned char* host_;
  std::size_t bytes_;
  std::shared_ptr<void> memory_;
  unsigned char* first_;
};

}  // namespace ddprun::conformance
