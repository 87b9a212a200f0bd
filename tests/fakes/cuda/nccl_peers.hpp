// The ranks of a communicator on one host. In a collective, rank 0 gathers all contributions, computes each rank's
// result, and sends it. In an exchange, only the ranks that have data for each other meet. The sockets have names that
// exist only while their process lives.
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
#include <variant>
#include <vector>

namespace ddprun::fake_nccl {

// NCCL's error message and its result code.
struct Failure : std::runtime_error {
  Failure(ncclResult_t result_, const std::string& words) : std::runtime_error(words), result(result_) {}
  ncclResult_t result;
};

// Computes each rank's result from all contributions.
using Rule = std::function<std::vector<std::string>(const std::vector<std::string>&)>;

struct Collective {
  std::string name;                               // must be the same on all ranks
  std::function<std::string()> read;              // returns this rank's contribution
  Rule rule;                                      // used by rank 0
  std::function<void(const std::string&)> write;  // receives this rank's result
  std::function<void()> finish;                   // called last, also after an error
};

// Memory that goes to the rank `peer`, or comes from it.
struct Block {
  void* data;
  std::size_t bytes;
  int peer;
};

// At most one block to each rank, and one from each.
struct Exchange {
  std::function<void()> begin;  // called first: waits until the memory may be used
  std::vector<Block> sent;
  std::vector<Block> received;
  std::function<void()> finish;  // called last, also after an error
};

class Peers {
 public:
  Peers(const std::string& id, int rank, int size);
  // Aborts work in progress.
  ~Peers();

  void queue(std::variant<Collective, Exchange> work);
  // ncclInProgress until all ranks are connected; then the first error, if any.
  ncclResult_t state() const;
  std::string words() const;
  // Waits until nothing is queued, or until an error.
  void flush();

 private:
  void work();
  void meet();
  void serve(const Collective& collective) const;
  void serve(const Exchange& exchange) const;
  std::string exchange_as_first(const Collective& collective) const;
  void expect(int rank, const std::string& name) const;
  void send_text(int rank, const std::string& text) const;
  std::string receive_text(int rank) const;
  int kept(int socket);

  const std::string address_;
  const int rank_;
  const int size_;
  std::vector<int> others_;  // the socket to each rank

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> sockets_;  // all that were opened
  std::deque<std::variant<Collective, Exchange>> queue_;
  bool is_ending_ = false;
  bool is_busy_ = false;
  ncclResult_t state_ = ncclInProgress;
  std::string words_;
  std::thread thread_;
};

}  // namespace ddprun::fake_nccl
