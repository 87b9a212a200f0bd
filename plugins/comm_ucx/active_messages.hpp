// UCX's active messages. A receiver that expects a message gets the bytes where UCX has read them, so it can add them
// without a copy.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace ddprun::ucx_backend {

// Uses the bytes of a message. It must not throw, nor use messages.
using Use = std::function<void(const std::byte* bytes)>;

// A message that a rank expects.
struct Arrival {
  ucp_tag_t tag = 0;
  void* to = nullptr;  // where the bytes go, unless `use` is given
  uint64_t bytes = 0;
  Use use;
  ucs_status_t status = UCS_INPROGRESS;
  bool is_collected = false;
};

// Messages with equal tags are received in the order in which they were sent, if the connection keeps the order. A TCP
// connection does. Messages arrive while the worker progresses. One thread at a time, the one that uses the worker.
class ActiveMessages {
 public:
  // False with UCX before 1.22, and if UCX_PROTO_ENABLE or UCX_ZCOPY_THRESH is set: UCX may then copy a part of a
  // message, and send that part only when it is polled again.
  static bool is_possible();
  // It must outlive the worker. Throws CommError.
  explicit ActiveMessages(ucp_worker_h worker);
  ActiveMessages(const ActiveMessages&) = delete;
  ActiveMessages& operator=(const ActiveMessages&) = delete;

  // Frees the headers of earlier sends, which must be complete.
  void begin() noexcept { headers_.clear(); }
  // Starts to send, without a rendezvous: returns UCX's request. It is complete when UCX no longer reads the data.
  ucs_status_ptr_t send(ucp_ep_h to, ucp_tag_t tag, const void* data, uint64_t bytes, const ucp_request_param_t& how);
  // Expects a message. The reference is valid until collect() or forget().
  Arrival& expect(ucp_tag_t tag, void* to, uint64_t bytes, Use use);
  // Ends a complete arrival.
  void collect(Arrival& arrival) noexcept;
  // After a failure: ends all arrivals, so that nothing is written any more, and drops all later messages.
  void forget() noexcept;

 private:
  // A message that arrived before it was expected.
  struct Early {
    ucp_tag_t tag;
    std::vector<std::byte> bytes;
  };
  static ucs_status_t on_message(void* self, const void* header, std::size_t header_bytes, void* data,
                                 std::size_t bytes, const ucp_am_recv_param_t*);
  void take(ucp_tag_t tag, const std::byte* data, std::size_t bytes) noexcept;

  std::deque<ucp_tag_t> headers_;  // UCX reads them until a send is complete
  std::deque<Arrival> expected_;
  std::deque<Early> early_;
  bool is_out_of_memory_ = false, is_forgotten_ = false;
};

}  // namespace ddprun::ucx_backend
