// The messages between the store's server and its clients.
//
// First, both sides prove that they know the job's secret (HMAC-SHA256, RFC 2104; a challenge in each direction):
//   client -> server  kHello + client's nonce
//   server -> client  kHello + server's nonce + proof("server", client's nonce, server's nonce)
//   client -> server  proof("client", client's nonce, server's nonce)
// These messages have a fixed size, so nothing that an unknown process sends is parsed. After them each side sends
// frames: the length (8 bytes, little-endian), then the payload, which begins with a number of the enums below.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "launch/net/bytes.hpp"
#include "launch/net/secret.hpp"

namespace ddprun::launch {

inline constexpr std::string_view kHello = "ddpstor5";  // changes when a message changes
inline constexpr std::size_t kNonceBytes = 32;
inline constexpr std::size_t kProofBytes = 32;
inline constexpr std::size_t kFirstBytes = kHello.size() + kNonceBytes;
inline constexpr std::size_t kHeaderBytes = 8;       // of a frame
inline constexpr uint64_t kLongestFrame = 64 << 20;  // of a client; the values that it wants may be longer together

enum class Request : uint64_t {
  // milliseconds; 0, or 1 and key and value to set; then the key that is wanted, or a name and a number of ranks whose
  // rank_key() are wanted, or nothing -> values, late, refused or failed
  exchange,
  join,     // node, nodes, milliseconds, info -> started, late or refused; then events follow
  event,    // text, from a node that has joined: passed on to all nodes
  report,   // text, from a node that has joined: passed on to node 0
  ping,     // a node is alive -> pong
  leave,    // a node ends without a failure
  silence,  // nothing arrives from the server any more: the node is lost
};

// late: the time limit of the request has passed; the numbers of the missing keys or nodes follow. failed: another
// process of the job was lost meanwhile, with a text.
// started: how often the nodes have joined before, whether the node comes back into a job that runs, and the info of
// each node. back: a lost node has come back; its number and its info.
enum class Reply : uint64_t { values, late, refused, failed, started, event, lost, back, pong };

// The rest of a late reply: "0, 2, 3".
std::string missing_ranks(ByteReader& reader);

// How long a client waits for an answer, beyond the time that the request itself may take.
inline constexpr std::chrono::milliseconds kAnswer{5000};

// One side's part of the proof of the secret. Without a socket, so that it can be tested by itself.
class Greeting {
 public:
  enum class Side { client, server };
  enum class Result { incomplete, not_a_store, other_secret, complete };

  Greeting(Side side, Secret secret, std::string nonce = make_secret())
      : side_(side), secret_(std::move(secret)), nonce_(std::move(nonce)) {}

  // Takes its part from the beginning of `received`, and adds to `reply` what must be sent now. A client calls it first
  // before anything has come.
  Result step(std::string& received, std::string& reply);

 private:
  std::string proof(std::string_view role) const;

  const Side side_;
  const Secret secret_;
  const std::string nonce_;
  std::string other_nonce_;
  bool has_begun_ = false;
};

// The payload after its length.
std::string frame(std::string_view payload);
// Moves the first frame's payload from `received` to `payload`; false if the frame is not there as a whole. Throws
// std::out_of_range if its payload has more than `most` bytes. The frames of the server may be longer than
// kLongestFrame.
bool take_frame(std::string& received, std::string& payload, uint64_t most = UINT64_MAX);

}  // namespace ddprun::launch
