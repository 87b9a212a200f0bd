// The messages between the store's server and its clients.
//
// First, both sides prove that they know the job's secret (HMAC-SHA256, RFC 2104; a challenge in each direction):
//   client -> server  kHello + client's nonce
//   server -> client  kHello + server's nonce + proof("server", client's nonce, server's nonce)
//   client -> server  proof("client", client's nonce, server's nonce)
// These messages have a fixed size, so nothing that an unknown process sends is parsed. After them each side sends
// frames: the length (4 bytes, little-endian), then the payload, which begins with a number of the enums below.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "launch/net/bytes.hpp"
#include "launch/net/secret.hpp"

namespace ddprun::launch {

inline constexpr std::string_view kHello = "ddpstor2";  // changes when the protocol changes
inline constexpr std::size_t kNonceBytes = 32;
inline constexpr std::size_t kProofBytes = 32;
inline constexpr std::size_t kFirstBytes = kHello.size() + kNonceBytes;
inline constexpr std::size_t kAnswerBytes = kFirstBytes + kProofBytes;
inline constexpr uint32_t kLongestFrame = 64 << 20;  // of a client; the values of a gather are longer together

enum class Request : uint64_t {
  set,      // key, value                         -> done or refused
  get,      // key, milliseconds                  -> value, late or refused
  gather,   // name, rank, size, value, milliseconds -> values, late (with the missing ranks) or refused
  join,     // node, nodes, milliseconds, info    -> started, late or refused; then events follow
  event,    // text, from a node that has joined: passed on to all nodes
  report,   // text, from a node that has joined: passed on to node 0
  ping,     // a node is alive                    -> pong
  leave,    // a node ends without a failure      -> done
  silence,  // nothing arrives from the server any more: the node is lost
};

// late: the time limit of the request has passed. failed: another process of the job was lost meanwhile, with a text.
enum class Reply : uint64_t { done, value, values, late, refused, failed, started, event, lost, pong };

// The beginning of a request.
inline ByteWriter request(Request kind) {
  ByteWriter writer;
  writer.number(static_cast<uint64_t>(kind));
  return writer;
}

// How long a client waits for an answer, beyond the time that the request itself may take.
inline constexpr std::chrono::milliseconds kAnswer{5000};

std::string make_nonce();
std::string proof(const Secret& secret, std::string_view role, std::string_view client_nonce,
                  std::string_view server_nonce);
// In constant time.
bool equal_proofs(std::string_view a, std::string_view b);

// What a client has received of the server's answer to its greeting. `right` and `other_secret`: all of it.
enum class Answer { incomplete, not_a_store, other_secret, right };
Answer check_answer(std::string_view received, const Secret& secret, std::string_view client_nonce);

// The length in front of a payload.
std::string frame_header(std::size_t payload);
uint32_t frame_length(std::string_view header);
// Moves the first frame's payload from `received` to `payload`; false if the frame is not there as a whole. For
// clients: the frames of the server may be longer than kLongestFrame.
bool take_frame(std::string& received, std::string& payload);

}  // namespace ddprun::launch
