#include "active_messages.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "context.hpp"

namespace ddprun::ucx_backend {
namespace {

constexpr unsigned kId = 0;

void finish(Arrival& arrival, const std::byte* data, std::size_t bytes) noexcept {
  arrival.status = bytes == arrival.bytes ? UCS_OK : UCS_ERR_MESSAGE_TRUNCATED;
  if (arrival.status != UCS_OK) return;
  if (arrival.use) {
    arrival.use(data);
  } else {
    std::memcpy(arrival.to, data, bytes);
  }
}

}  // namespace

bool ActiveMessages::is_possible() {
  constexpr std::pair kTested(1u, 22u);
  std::pair<unsigned, unsigned> version;
  unsigned release = 0;
  ucp_get_version(&version.first, &version.second, &release);
  const auto is_set = [](const char* name) { return std::getenv(name) != nullptr; };
  return version >= kTested && !is_set("UCX_PROTO_ENABLE") && !is_set("UCX_ZCOPY_THRESH");
}

ActiveMessages::ActiveMessages(ucp_worker_h worker) {
  ucp_am_handler_param_t how = {};
  how.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS | UCP_AM_HANDLER_PARAM_FIELD_CB |
                   UCP_AM_HANDLER_PARAM_FIELD_ARG;
  how.id = kId;
  how.flags = UCP_AM_FLAG_WHOLE_MSG;
  how.cb = on_message;
  how.arg = this;
  check(ucp_worker_set_am_recv_handler(worker, &how), CommStatus::internal, "UCX takes no active messages");
}

ucs_status_ptr_t ActiveMessages::send(ucp_ep_h to, ucp_tag_t tag, const void* data, uint64_t bytes,
                                      const ucp_request_param_t& how) {
  const ucp_tag_t& header = headers_.emplace_back(tag);
  ucp_request_param_t eager = how;
  eager.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
  eager.flags = UCP_AM_SEND_FLAG_EAGER;
  return ucp_am_send_nbx(to, kId, &header, sizeof header, data, bytes, &eager);
}

Arrival& ActiveMessages::expect(ucp_tag_t tag, void* to, uint64_t bytes, Use use) {
  Arrival& arrival = expected_.emplace_back(Arrival{.tag = tag, .to = to, .bytes = bytes, .use = std::move(use)});
  if (is_out_of_memory_) arrival.status = UCS_ERR_NO_MEMORY;
  const auto early = std::find_if(early_.begin(), early_.end(), [&](const Early& one) { return one.tag == tag; });
  if (early == early_.end()) return arrival;
  finish(arrival, early->bytes.data(), early->bytes.size());
  early_.erase(early);
  return arrival;
}

void ActiveMessages::forget() noexcept {
  is_forgotten_ = true;
  expected_.clear();
  early_.clear();
}

void ActiveMessages::collect(Arrival& arrival) noexcept {
  arrival.is_collected = true;
  while (!expected_.empty() && expected_.front().is_collected) expected_.pop_front();
}

// UCX may overwrite the bytes after this function.
ucs_status_t ActiveMessages::on_message(void* self, const void* header, std::size_t header_bytes, void* data,
                                        std::size_t bytes, const ucp_am_recv_param_t* /*how*/) {
  ucp_tag_t tag = 0;
  if (header_bytes != sizeof tag) return UCS_OK;  // not one of ours
  std::memcpy(&tag, header, sizeof tag);
  static_cast<ActiveMessages*>(self)->take(tag, static_cast<const std::byte*>(data), bytes);
  return UCS_OK;
}

void ActiveMessages::take(ucp_tag_t tag, const std::byte* data, std::size_t bytes) noexcept {
  if (is_forgotten_) return;
  const auto is_meant = [&](const Arrival& one) { return one.tag == tag && one.status == UCS_INPROGRESS; };
  const auto arrival = std::find_if(expected_.begin(), expected_.end(), is_meant);
  if (arrival != expected_.end()) return finish(*arrival, data, bytes);
  try {
    early_.push_back({tag, {data, data + bytes}});
  } catch (const std::bad_alloc&) {
    is_out_of_memory_ = true;
    for (Arrival& one : expected_) one.status = one.status == UCS_INPROGRESS ? UCS_ERR_NO_MEMORY : one.status;
  }
}

}  // namespace ddprun::ucx_backend
