// A communicator of MPI for the ranks of ddprun, with the memory that MPI works on.
#pragma once

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>

#include "ddprun/plugin/comm_plugin.hpp"
#include "process.hpp"

class Communicator {
 public:
  // Collective. piece: the bytes of each of the two buffers; equal on all ranks. Throws ddprun::CommError.
  Communicator(const ddprun::Host& host, std::size_t piece);
  ~Communicator();
  Communicator(const Communicator&) = delete;

  // The buffers of MPI: a request that has failed keeps using them, and never the caller's.
  char* out() const { return memory_->out.get(); }
  char* in() const { return memory_->in.get(); }
  std::size_t piece() const { return piece_; }

  void abort() noexcept { aborted_ = true; }
  // A collective of ddprun begins; it may be several of MPI.
  void begin() { deadline_ = Clock::now() + host_.deadline(); }

  // Starts a non-blocking collective with these first arguments, as in run("MPI_Ibarrier", MPI_Ibarrier), and waits for
  // its end. Throws ddprun::CommError; after that, every later call throws.
  template <typename Collective, typename... Arguments>
  void run(const char* what, Collective start, Arguments... arguments) {
    if (failed_) throw ddprun::CommError(ddprun::CommStatus::internal, "an earlier collective has failed");
    failed_ = true;
    check(start(arguments..., memory_->comm, &memory_->request), what);
    wait(what);
    failed_ = false;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Memory {
    explicit Memory(std::size_t bytes) : out(new char[bytes]), in(new char[bytes]) {}

    std::unique_ptr<char[]> out, in;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  void join();
  void leave() noexcept;
  void wait(const char* what);

  const ddprun::Host host_;
  const std::size_t piece_;
  std::unique_ptr<Memory> memory_;
  Clock::time_point deadline_;
  bool failed_ = false;  // true also while a request is in flight
  std::atomic<bool> aborted_{false};
};
