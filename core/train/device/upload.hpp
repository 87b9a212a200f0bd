// Upload: batches on their way from the loader's memory to a GPU, beside what the GPU computes.
#pragma once

#include <torch/torch.h>

#include "train/loop/data_loader.hpp"
#include "train/device/streams.hpp"

namespace ddprun::train {

// One thread; one batch at a time is on its way.
class Upload {
 public:
  explicit Upload(torch::Device device);
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;
  // Waits, as wait() does.
  ~Upload();

  // Queues the copy of a batch in host memory, on a stream of its own. The host memory must stay as it is until wait().
  TensorBatch begin(const TensorBatch& host);
  // Makes the device's current stream wait for that copy, and the memory wait for what the stream will do with it.
  void hand_out(const TensorBatch& batch);
  // Waits on the host until the last copy is done: its host memory is free again.
  void wait();

 private:
  const torch::Device device_;
  const c10::Stream stream_;
  c10::Event copied_;
};

}  // namespace ddprun::train
