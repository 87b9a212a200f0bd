#include "tools/data/sha256.hpp"

#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/file.hpp"
#include "ddprun/error.hpp"

namespace ddprun::fetch {
namespace {

constexpr size_t kChunk = 1 << 18;

void check(bool done) {
  if (!done) throw Error(ExitCode::failure, "OpenSSL cannot compute SHA-256 here");
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  check(context_ != nullptr);
  restart();
}

Sha256::~Sha256() {
  EVP_MD_CTX_free(context_);
}

void Sha256::update(const void* data, size_t bytes) {
  check(EVP_DigestUpdate(context_, data, bytes) == 1);
}

int64_t Sha256::update_from(int fd, const std::string& path, const std::function<void()>& before_each) {
  std::vector<char> chunk(kChunk);
  int64_t total = 0;
  while (true) {
    before_each();
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_file_error("read", path, errno);
    if (got == 0) return total;
    update(chunk.data(), static_cast<size_t>(got));
    total += got;
  }
}

void Sha256::restart() {
  check(EVP_DigestInit_ex(context_, EVP_sha256(), nullptr) == 1);
}

std::string Sha256::hex() const {
  EVP_MD_CTX* copy = EVP_MD_CTX_new();
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  const bool done =
      copy != nullptr && EVP_MD_CTX_copy_ex(copy, context_) == 1 && EVP_DigestFinal_ex(copy, digest, &bytes) == 1;
  EVP_MD_CTX_free(copy);
  check(done);
  std::string text;
  for (unsigned int i = 0; i < bytes; ++i) {
    text += "0123456789abcdef"[digest[i] >> 4];
    text += "0123456789abcdef"[digest[i] & 15];
  }
  return text;
}

}  // namespace ddprun::fetch
