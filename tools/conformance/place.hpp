// Where the buffers of a rank are: in host memory, or on a GPU. For a GPU, the host has an image of the buffer, to fill
// and to check.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "cuda/runtime.hpp"
#include "ddprun/comm_backend.hpp"

namespace ddprun::conformance {

// Used by one thread, because a CUDA stream shared by two communicators would make each wait for the other.
class Place {
 public:
  // On the GPU with CUDA ordinal `device`; -1: in host memory. Throws Error.
  explicit Place(int device);

  // For a backend; the buffers come from an Image or from CommBackend::allocate.
  Collective call(const void* send, void* recv, std::size_t count, DType dtype, Op op = Op::sum) const;
  // Copies between the host and a backend's buffer. get() first waits for the stream.
  void put(void* memory, const void* host, std::size_t bytes) const;
  void get(void* host, const void* memory, std::size_t bytes) const;

  // On a GPU: captures the work that `work` queues on this place's stream as a CUDA graph, and launches such a graph.
  std::shared_ptr<void> capture(const std::function<void()>& work) const { return gpu_->capture(stream_.get(), work); }
  void replay(const std::shared_ptr<void>& graph) const { gpu_->replay(graph.get(), stream_.get()); }

 private:
  friend class Image;
  std::shared_ptr<void> allocate(std::size_t bytes) const;

  std::optional<cuda::Runtime> gpu_;
  std::shared_ptr<void> stream_;
  // Kept for reuse, by size: freeing would wait for all work on the GPU, including collectives of another communicator,
  // which may wait for a rank that also waits.
  using Pool = std::multimap<std::size_t, std::shared_ptr<void>>;
  std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();
};

// The memory that a backend gets instead of a piece of host memory: that piece itself, or GPU memory of the same size
// and alignment. The piece and the place outlive it.
class Image {
 public:
  Image(const Place& place, void* host, std::size_t bytes);

  // The backend's address for this address of the piece.
  void* at(const void* host) const;
  // Copies the piece to the image, and the image to the piece.
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
