// Messages between ranks, and the waits for them. A wait ends with the message, at the deadline, after an abort, and if
// the peer is gone.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "active_messages.hpp"
#include "context.hpp"
#include "host/liveness.hpp"
#include "host/silence.hpp"
#include "peers.hpp"
#include "shm/wait.hpp"

namespace ddprun::ucx_backend {

// What both ranks know of a message.
struct Message {
  int peer;
  int label;
  uint64_t bytes;
  bool confirmed = false;  // over a network: complete only when the peer has begun to receive it
};

// A message in transit. It uses its memory until it has been waited for.
struct Transfer {
  void* request = nullptr;     // null: complete
  Arrival* arrival = nullptr;  // set: an active message that is expected, until it is complete
  uint64_t bytes = 0;          // of a receive by `request`
  int peer = -1;
  bool is_receive = false;
};

// One thread at a time, except for abort. Functions without noexcept throw CommError; after that, call only forget,
// close and disconnect.
class Messages {
 public:
  // Collective, with the host's allgather. Does not start UCX.
  explicit Messages(const Host& host);

  // Starts UCX and connects all ranks. Collective, as above; at most host.deadline(). Call it before the functions
  // below, except for abort, close and processes.
  void connect();

  // Begins the next collective: its messages match those of no other one. `name` must live as long as the collective;
  // memory (Memory::host, Memory::cuda) is that of its messages.
  void begin(const char* name, Memory memory = Memory::host) noexcept;
  // Messages of one label between two ranks are received in the order in which they were sent. label: 0 to 65535. A
  // receive has the exact length; a message of another length is CommStatus::mismatch, or is never received if only one
  // of the two lengths makes it an active message. When a send is complete, UCX no longer needs this process: a message
  // that the socket may not hold is an active message, which is complete once the socket has it, or a synchronous one,
  // which is complete once the peer is receiving it. (A flush of UCX waits for the peer's answer, even if the peer has
  // all it needs and is busy elsewhere.)
  Transfer send(const Message& message, const void* data);
  // `use`, only if is_active(message): is called with the bytes, which do not go to `data` then; now if they are here,
  // else while this rank waits for any message.
  Transfer receive(const Message& message, void* data, Use use = {});
  // Whether it is sent as an active message: a large one over TCP, of host memory.
  bool is_active(const Message& message) const noexcept;
  void wait(Transfer& transfer);
  // After a failure: `use` is called no more.
  void forget() noexcept { active_->forget(); }
  // Waits for something other than a message; an error calls it `what`. ready() is polled; messages move on meanwhile.
  void wait_for(const std::function<bool()>& ready, const std::string& what);

  void abort() noexcept { waiter_.abort(); }
  // After a failure: reports to the peers that rank `cause` is lost, without waiting for them, and ends all transfers,
  // so that the caller may use their memory again. Nothing can be sent after that.
  void close(int cause) noexcept;

  // The last rank that was waited for, or -1.
  int awaited() const noexcept { return awaited_; }
  // After a loss: the ranks on hosts that are cut off (host/silence.hpp).
  std::vector<int> silent_ranks() const { return silence_.ranks_after_loss(); }
  // After CommStatus::peer_lost: the lost rank.
  int culprit() const noexcept { return culprit_; }
  // Whether all ranks communicate through shared memory.
  bool are_by_memory() const noexcept;
  // The processes of all ranks.
  const std::vector<host::Process>& processes() const noexcept { return processes_; }
  // Ends UCX without waiting for the peers, as the destructor does.
  void disconnect() noexcept;
  // True before connect() and after close() and disconnect().
  bool is_closed() const noexcept { return worker_ == nullptr; }
  // As in Peers; lives as long as the messages.
  const std::string& transports() const noexcept { return transports_; }
  // The same, for the peers on other hosts.
  std::string transports_between_hosts() const { return peers_->transports(here_); }

 private:
  void require_equal_transports() const;
  void greet();
  void exchange(int label);
  bool is_over(Transfer& transfer);
  [[noreturn]] void fail(ucs_status_t status, int peer);
  int lost();
  void drain() noexcept;
  ucp_tag_t tag(int label, int source) const noexcept;

  const Host host_;
  const std::vector<host::Process> processes_;
  const host::Liveness liveness_;
  host::Silence silence_;
  const std::vector<bool> here_;  // by rank: on this host
  const Transports chosen_;
  shm::Waiter waiter_;
  // By rank, 1: Peers::is_by_tcp and ActiveMessages::is_possible, for this rank and for the peer. UCX may use them
  // until the worker ends, also after a failed exchange.
  std::vector<char> active_to_, active_from_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<ActiveMessages> active_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<Peers> peers_;
  std::string transports_;
  Memory memory_ = Memory::host;
  ucp_request_param_t how_ = {};  // this collective's messages
  uint32_t number_ = 0;
  int awaited_ = -1, culprit_ = -1;
  int32_t notice_ = -1;  // the cause that a failed peer has reported
  int32_t cause_ = -1;   // the one that this rank reports
};

}  // namespace ddprun::ucx_backend
