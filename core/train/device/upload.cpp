#include "train/device/upload.hpp"

namespace ddprun::train {

Upload::Upload(torch::Device device) : device_(device), stream_(side_stream(device)), copied_(ordering_event(device)) {}

Upload::~Upload() {
  try {
    wait();
  } catch (const c10::Error&) {  // the GPU has failed; the thread that computes on it gets the same error
  }
}

TensorBatch Upload::begin(const TensorBatch& host) {
  TensorBatch batch = host;
  const c10::StreamGuard on(stream_);
  for (torch::Tensor* tensor : {&batch.input, &batch.target}) {
    const torch::Tensor source = *tensor;
    *tensor = torch::empty(source.sizes(), source.options().device(device_));
    tensor->copy_(source, true);
  }
  copied_.record(stream_);
  return batch;
}

void Upload::hand_out(const TensorBatch& batch) {
  const c10::Stream current = current_stream(device_);
  copied_.block(current);
  keep_for(batch.input, current);
  keep_for(batch.target, current);
}

void Upload::wait() {
  copied_.synchronize();
}

}  // namespace ddprun::train
