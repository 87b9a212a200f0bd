#include "launch/net/protocol.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace ddprun::launch {

static_assert(kNonceBytes == kSecretBytes);

Greeting::Result Greeting::step(std::string& received, std::string& reply) {
  const bool is_client = side_ == Side::client;
  if (is_client && !std::exchange(has_begun_, true)) reply.append(kHello).append(nonce_);
  if (other_nonce_.empty()) {
    if (!kHello.starts_with(std::string_view(received).substr(0, kHello.size()))) return Result::not_a_store;
    if (received.size() < kFirstBytes) return Result::incomplete;
    other_nonce_ = received.substr(kHello.size(), kNonceBytes);
    received.erase(0, kFirstBytes);
    if (!is_client) reply.append(kHello).append(nonce_).append(proof("server"));
  }
  if (received.size() < kProofBytes) return Result::incomplete;
  const std::string expected = proof(is_client ? "server" : "client");
  if (CRYPTO_memcmp(received.data(), expected.data(), kProofBytes) != 0) return Result::other_secret;
  received.erase(0, kProofBytes);
  if (is_client) reply.append(proof("client"));
  return Result::complete;
}

std::string Greeting::proof(std::string_view role) const {
  const bool is_client = side_ == Side::client;
  std::string message(role);
  message.append(is_client ? nonce_ : other_nonce_).append(is_client ? other_nonce_ : nonce_);
  std::string result(kProofBytes, '\0');
  HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
       reinterpret_cast<const unsigned char*>(message.data()), message.size(),
       reinterpret_cast<unsigned char*>(result.data()), nullptr);
  return result;
}

std::string missing_ranks(ByteReader& reader) {
  std::string missing;
  while (!reader.empty()) missing += (missing.empty() ? "" : ", ") + std::to_string(reader.number());
  return missing;
}

std::string frame(std::string_view payload) {
  return ByteWriter().text(payload).bytes();
}

bool take_frame(std::string& received, std::string& payload, uint64_t most) {
  if (received.size() < kHeaderBytes) return false;
  const uint64_t length = ByteReader(received).number();
  if (length > most) throw std::out_of_range("a frame is too long");
  if (received.size() - kHeaderBytes < length) return false;
  payload = received.substr(kHeaderBytes, length);
  received.erase(0, kHeaderBytes + length);
  if (received.empty()) std::string().swap(received);  // a long frame must not occupy memory for good
  return true;
}

}  // namespace ddprun::launch
