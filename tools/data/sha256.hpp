// SHA-256 (FIPS 180-4) of what is given piece by piece; OpenSSL does the work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

struct evp_md_ctx_st;

namespace ddprun::fetch {

// One thread. Throws Error(failure) where OpenSSL refuses, as under a policy without SHA-256.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(const void* data, size_t bytes);
  // Takes in what an open file holds from where it stands to its end, and returns how many bytes that was. Calls
  // `before_each` before every piece; what that throws ends it. Throws Error(failure) with path and errno's words.
  int64_t update_from(int fd, const std::string& path, const std::function<void()>& before_each);
  // Forgets what was given.
  void restart();
  // 64 hexadecimal digits of all that was given so far; more may follow.
  std::string hex() const;

 private:
  evp_md_ctx_st* context_;
};

}  // namespace ddprun::fetch
