// Incremental SHA-256 (FIPS 180-4), by OpenSSL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

struct evp_md_ctx_st;

namespace ddprun::fetch {

// One thread. Throws Error(failure) if OpenSSL refuses, for example under a policy without SHA-256.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(const void* data, size_t bytes);
  // Adds the rest of an open file, from its current position, and returns the number of bytes. Calls `before_each`
  // before every piece; its exceptions pass through. Throws Error(failure) with path and errno's message.
  int64_t update_from(int fd, const std::string& path, const std::function<void()>& before_each);
  // Starts again with no data.
  void restart();
  // The hash of all data so far as 64 hexadecimal digits; more data may follow.
  std::string hex() const;

 private:
  evp_md_ctx_st* context_;
};

}  // namespace ddprun::fetch
