// Upload: copies batches from the DataLoader's memory to a GPU while the GPU computes.
#pragma once

#include <torch/torch.h>

#include "train/device/streams.hpp"
#include "train/loop/data_loader.hpp"

namespace ddprun::train {

// Single-threaded; one copy at a time.
class Upload {
 public:
  explicit Upload(torch::Device device);
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;
  // Waits, as wait() does.
  ~Upload();

  // Queues the copy of a batch in host memory on a separate stream. The host memory must not change before wait()
  // returns.
  TensorBatch begin(const TensorBatch& host);
  // Makes the device's current stream wait for the copy, and keeps the memory until the stream's work on it is done.
  void hand_out(const TensorBatch& batch);
  // Blocks the host until the last copy is done. Its host memory may be reused then.
  void wait();

 private:
  const torch::Device device_;
  const c10::Stream stream_;
  c10::Event copied_;
};

}  // namespace ddprun::train
