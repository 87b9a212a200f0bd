#include "launch/net/protocol.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace ddprun::launch {

static_assert(kNonceBytes == kSecretBytes);

std::string make_nonce() {
  return make_secret();
}

std::string proof(const Secret& secret, std::string_view role, std::string_view client_nonce,
                  std::string_view server_nonce) {
  std::string message(role);
  message.append(client_nonce).append(server_nonce);
  std::string result(kProofBytes, '\0');
  unsigned length = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(message.data()), message.size(),
       reinterpret_cast<unsigned char*>(result.data()), &length);
  return result;
}

bool equal_proofs(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Answer check_answer(std::string_view received, const Secret& secret, std::string_view client_nonce) {
  if (!kHello.starts_with(received.substr(0, kHello.size()))) return Answer::not_a_store;
  if (received.size() < kAnswerBytes) return Answer::incomplete;
  const std::string_view server_nonce = received.substr(kHello.size(), kNonceBytes);
  const std::string expected = proof(secret, "server", client_nonce, server_nonce);
  return equal_proofs(received.substr(kFirstBytes, kProofBytes), expected) ? Answer::right : Answer::other_secret;
}

std::string frame_header(std::size_t payload) {
  std::string header;
  for (int shift = 0; shift < 32; shift += 8) header += static_cast<char>(payload >> shift & 0xff);
  return header;
}

uint32_t frame_length(std::string_view header) {
  uint32_t length = 0;
  for (unsigned byte = 0; byte < 4; ++byte)
    length |= static_cast<uint32_t>(static_cast<unsigned char>(header[byte])) << 8 * byte;
  return length;
}

bool take_frame(std::string& received, std::string& payload) {
  const std::size_t header = frame_header(0).size();
  if (received.size() < header) return false;
  const std::size_t length = frame_length(received);
  if (received.size() < header + length) return false;
  payload = received.substr(header, length);
  received.erase(0, header + length);
  return true;
}

}  // namespace ddprun::launch
