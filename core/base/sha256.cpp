#include "base/sha256.hpp"

#include <openssl/evp.h>

#include <boost/algorithm/hex.hpp>
#include <iterator>

#include "ddprun/error.hpp"

namespace ddprun {
namespace {

void require(bool good) {
  if (!good) throw Error(ExitCode::failure, "OpenSSL cannot compute SHA-256 here");
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  require(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::add(const void* data, std::size_t bytes) {
  require(EVP_DigestUpdate(context_.get(), data, bytes) == 1);
}

std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  require(EVP_DigestFinal_ex(context_.get(), digest, &bytes) == 1);
  std::string text;
  boost::algorithm::hex_lower(digest, digest + bytes, std::back_inserter(text));
  return text;
}

}  // namespace ddprun
