// The secret of a job: processes of several hosts prove with it that they belong to the job.
#pragma once

#include <string>

namespace ddprun::launch {

// 32 random bytes; empty: the job has none.
using Secret = std::string;

inline constexpr std::size_t kSecretBytes = 32;
inline const Secret kKnownSecret(kSecretBytes, '\0');  // that everybody knows, for launch.insecure

// Where the server is, and the secret that it requires.
struct StoreAddress {
  std::string host;  // a name or a numeric address
  int port = 0;
  Secret secret;  // empty: none

  std::string text() const {  // "node0:29500", "[::1]:29500"
    return (host.find(':') == host.npos ? host : '[' + host + ']') + ":" + std::to_string(port);
  }
};

Secret make_secret();  // throws Error(failure) if the system has no random numbers

// The secret in DDPRUN_SECRET (64 hexadecimal digits), or in the file that DDPRUN_SECRET_FILE names; empty if neither
// is set. Throws Error(rendezvous) if it is something else, or if others can read the file.
Secret secret_of_environment();

// Hexadecimal digits; and a secret from 64 of them. from_hex() throws Error(rendezvous); `origin` is for its message.
std::string to_hex(const std::string& bytes);
Secret from_hex(const std::string& digits, const std::string& origin);

}  // namespace ddprun::launch
