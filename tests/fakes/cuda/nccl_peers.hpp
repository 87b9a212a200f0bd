// The ranks of a communicator on one host: rank 0 gathers what all contribute, makes what each is to get, and sends it.
// Over sockets that have a name only as long as their process lives.
#pragma once

#include <nccl.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ddprun::fake_nccl {

// What NCCL would say, and the result by which it says it.
struct Failure : std::runtime_error {
  Failure(ncclResult_t result_, const std::string& words) : std::runtime_error(words), result(result_) {}
  ncclResult_t result;
};

// From what the ranks contributed, what each of them gets.
using Rule = std::function<std::vector<std::string>(const std::vector<std::string>&)>;

struct Collective {
  std::string name;                               // what all ranks must call at once
  std::function<std::string()> read;              // what this rank contributes
  Rule rule;                                      // of rank 0
  std::function<void(const std::string&)> write;  // what this rank gets
  std::function<void()> finish;                   // last, whatever happened
};

class Peers {
 public:
  Peers(const std::string& id, int rank, int size);
  // Ends what is under way.
  ~Peers();

  void queue(Collective collective);
  // ncclInProgress until all ranks have met; then what went wrong, if anything.
  ncclResult_t state() const;
  std::string words() const;
  // Waits until nothing is queued, or something went wrong.
  void flush();

 private:
  void work();
  void meet();
  void serve(const Collective& collective) const;
  std::string exchange_as_first(const Collective& collective) const;
  void say(int socket, const std::string& text) const;
  std::string hear(int socket) const;
  int kept(int socket);

  const std::string address_;
  const int rank_;
  const int size_;
  std::vector<int> others_;  // of rank 0: the sockets of rank 1, 2, ...; of another rank: that of rank 0

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> sockets_;  // all that were opened
  std::deque<Collective> queue_;
  bool is_ending_ = false;
  bool is_busy_ = false;
  ncclResult_t state_ = ncclInProgress;
  std::string words_;
  std::thread thread_;
};

}  // namespace ddprun::fake_nccl
