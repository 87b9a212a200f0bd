// Sha256: the SHA-256 of bytes that come in pieces, by OpenSSL.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

struct evp_md_ctx_st;

namespace ddprun {

// Single-threaded.
class Sha256 {
 public:
  Sha256();  // throws Error(failure) if OpenSSL has no SHA-256 here: a policy may forbid it
  void add(const void* data, std::size_t bytes);
  // Of all bytes so far, as 64 lower-case digits. The last call.
  std::string hex();

 private:
  std::shared_ptr<evp_md_ctx_st> context_;
};

}  // namespace ddprun
