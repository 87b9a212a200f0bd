// Digests, and the secret of a job: processes of several hosts prove with it that they belong to the job.
#pragma once

#include <string>

namespace ddprun::launch {

// 32 random bytes; empty: the job has none.
using Secret = std::string;

inline constexpr std::size_t kSecretBytes = 32;

// In a job folder: the file with the secret in hexadecimal digits.
inline constexpr char kSecretFile[] = "secret";

Secret make_secret();  // throws Error(failure) if the system has no random numbers

// The secret in DDPRUN_SECRET (64 hexadecimal digits), or in the file that DDPRUN_SECRET_FILE names; empty if neither
// is set. Throws Error(rendezvous) if it is something else, or if others can read the file.
Secret secret_of_environment();

// 64 hexadecimal digits, and back. from_hex() throws Error(rendezvous); `origin` is for its message.
std::string to_hex(const Secret& secret);
Secret from_hex(const std::string& digits, const std::string& origin);

std::string digest(const std::string& text);  // SHA-256, 32 bytes

}  // namespace ddprun::launch
