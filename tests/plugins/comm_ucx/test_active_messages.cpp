// Active messages from a process to itself, over TCP.
#include <doctest/doctest.h>
#include <ucp/api/ucp.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "plugins/comm_ucx/active_messages.hpp"
#include "plugins/comm_ucx/context.hpp"

namespace {

using namespace ddprun::ucx_backend;

using Bytes = std::vector<std::byte>;

constexpr std::size_t kBytes = 100'000;
constexpr ucp_tag_t kTag = 7, kOtherTag = 8, kMarker = 9;

Bytes bytes_from(int first, std::size_t count = kBytes) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(static_cast<std::size_t>(first) + i);
  return bytes;
}

class Loop {
 public:
  Loop()
      : context_({.tls = "tcp", .devices = "lo", .asked_for = true}, 1, 1, false),
        worker_(std::make_unique<Worker>(context_)),
        active(worker_->get()) {
    const std::string address = worker_->address();
    ucp_ep_params_t wanted = {};
    wanted.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    wanted.address = reinterpret_cast<const ucp_address_t*>(address.data());
    REQUIRE(ucp_ep_create(worker_->get(), &wanted, &endpoint_) == UCS_OK);
  }
  ~Loop() { worker_.reset(); }

  // Sends a message and a marker, and waits for the marker, which arrives after the message.
  void send(ucp_tag_t tag, const Bytes& bytes) {
    const Bytes marker(1);
    Bytes to(1);
    Arrival& passed = active.expect(kMarker, to.data(), to.size(), {});
    void* const requests[] = {start(tag, bytes), start(kMarker, marker)};
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (passed.status == UCS_INPROGRESS) {
      if (std::chrono::steady_clock::now() > deadline) FAIL("the message did not arrive");
      ucp_worker_progress(worker_->get());
    }
    active.collect(passed);
    for (void* const request : requests) finish(request);
  }

  // Sends a message, and progresses for 200 ms.
  void send_and_poll(ucp_tag_t tag, const Bytes& bytes) {
    void* const request = start(tag, bytes);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    while (std::chrono::steady_clock::now() < end) ucp_worker_progress(worker_->get());
    finish(request);
  }

 private:
  void* start(ucp_tag_t tag, const Bytes& bytes) {
    void* const request = active.send(endpoint_, tag, bytes.data(), bytes.size(), {});
    REQUIRE_FALSE(UCS_PTR_IS_ERR(request));
    return request;
  }
  static void finish(void* request) {
    if (request == nullptr) return;
    CHECK(ucp_request_check_status(request) == UCS_OK);
    ucp_request_free(request);
  }

  Context context_;
  std::unique_ptr<Worker> worker_;
  ucp_ep_h endpoint_ = nullptr;

 public:
  ActiveMessages active;
};

}  // namespace

TEST_CASE("messages of one tag are received in order, whether they were expected or not") {
  Loop loop;
  Bytes first(kBytes), second(kBytes), third(kBytes), other(kBytes);
  Arrival& expected = loop.active.expect(kTag, first.data(), kBytes, {});
  CHECK(expected.status == UCS_INPROGRESS);
  loop.send(kTag, bytes_from(1));
  loop.send(kTag, bytes_from(2));
  loop.send(kOtherTag, bytes_from(3));
  loop.send(kTag, bytes_from(4));
  Arrival& from_other = loop.active.expect(kOtherTag, other.data(), kBytes, {});
  Arrival& early = loop.active.expect(kTag, second.data(), kBytes, {});
  Arrival& last = loop.active.expect(kTag, third.data(), kBytes, {});
  for (Arrival* arrival : {&last, &expected, &from_other, &early}) {
    CHECK(arrival->status == UCS_OK);
    loop.active.collect(*arrival);
  }
  CHECK((first == bytes_from(1)));
  CHECK((second == bytes_from(2)));
  CHECK((other == bytes_from(3)));
  CHECK((third == bytes_from(4)));
}

TEST_CASE("the bytes of a message are used as it arrives, once") {
  Loop loop;
  for (const bool is_early : {false, true}) {
    CAPTURE(is_early);
    Bytes got;
    int calls = 0;
    const auto use = [&](const std::byte* bytes) {
      ++calls;
      got.assign(bytes, bytes + kBytes);
    };
    if (is_early) loop.send(kTag, bytes_from(9));
    Arrival& arrival = loop.active.expect(kTag, nullptr, kBytes, use);
    CHECK(calls == (is_early ? 1 : 0));
    if (!is_early) loop.send(kTag, bytes_from(9));
    CHECK(arrival.status == UCS_OK);
    loop.active.collect(arrival);
    CHECK(calls == 1);
    CHECK((got == bytes_from(9)));
  }
}

TEST_CASE("a message of another length is an error, and writes nothing") {
  Loop loop;
  for (const std::size_t length : {kBytes - 1, kBytes + 1}) {
    Bytes to(kBytes + 1);
    Arrival& arrival = loop.active.expect(kTag, to.data(), kBytes, {});
    loop.send(kTag, bytes_from(1, length));
    CHECK(arrival.status == UCS_ERR_MESSAGE_TRUNCATED);
    loop.active.collect(arrival);
    CHECK((to == Bytes(kBytes + 1)));
  }
}

TEST_CASE("after forget(), a message that arrives writes nothing") {
  Loop loop;
  Bytes to(kBytes);
  loop.active.expect(kTag, to.data(), kBytes, {});
  loop.active.expect(kTag, nullptr, kBytes, [](const std::byte*) { FAIL_CHECK("it was forgotten"); });
  loop.send(kOtherTag, bytes_from(1));
  loop.active.forget();
  loop.send_and_poll(kTag, bytes_from(2));
  CHECK((to == Bytes(kBytes)));
}
