// The devices of strategy dp: each a thread, where it is a CPU with a team of compute threads of its own.
#pragma once

#include <ATen/ThreadLocalState.h>

#include <deque>
#include <exception>
#include <functional>
#include <semaphore>
#include <thread>

namespace ddprun::train {

// Device 0 is the thread that makes this object; each of the others is a thread that stays until the object goes. Every
// device has the number of compute threads that torch::set_num_threads was last told. Only the maker may call.
class DeviceThreads {
 public:
  // begin(device) is called once on each device's thread, on device 0 last; it must not throw.
  DeviceThreads(int devices, const std::function<void(int device)>& begin);
  DeviceThreads(const DeviceThreads&) = delete;
  DeviceThreads& operator=(const DeviceThreads&) = delete;
  ~DeviceThreads();

  int devices() const { return static_cast<int>(others_.size()) + 1; }
  // Calls work(device) on each of the first `count` devices at the same time, with the caller's grad mode and autocast,
  // and waits for all of them. Throws what the first device that failed threw, when all have ended. The next call may
  // follow all the same.
  void run(int count, const std::function<void(int device)>& work);

 private:
  struct Other {
    std::binary_semaphore start{0};
    std::exception_ptr fault;
    std::thread thread;
  };
  void live(int device, Other& self, const std::function<void(int device)>& begin);

  std::deque<Other> others_;
  std::counting_semaphore<> done_{0};
  // Of the run under way: written before start, read after it.
  const std::function<void(int device)>* work_ = nullptr;  // null: end
  const at::ThreadLocalState* state_ = nullptr;
};

}  // namespace ddprun::train
