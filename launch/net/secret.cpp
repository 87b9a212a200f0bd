#include "launch/net/secret.hpp"

#include <fcntl.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include <boost/algorithm/hex.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/file.hpp"
#include "base/unique_fd.hpp"
#include "ddprun/error.hpp"

namespace ddprun::launch {
namespace {

constexpr std::size_t kMostSecretBytes = 4096;  // of the file; no secret has so many

[[noreturn]] void refuse_secret(const std::string& origin, const std::string& what) {
  throw Error(ExitCode::rendezvous, origin + " " + what + "; make a secret with: openssl rand -hex 32");
}

Secret secret_in_file(const std::string& path) {
  // It may be a link, as the secrets are that Kubernetes mounts, or a pipe.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) {
    refuse_secret("DDPRUN_SECRET_FILE = " + path, std::strerror(errno));
  }
  if ((status.st_mode & 077) != 0) refuse_secret(path, "can be read by other users: chmod 600 " + path);
  std::string text;
  if (const int error = read_all(file.get(), text, kMostSecretBytes); error != 0) {
    refuse_secret("DDPRUN_SECRET_FILE = " + path, std::strerror(error));
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return from_hex(text, path);
}

}  // namespace

Secret make_secret() {
  Secret secret(kSecretBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(secret.data()), static_cast<int>(secret.size())) != 1) {
    throw Error(ExitCode::failure, "cannot make the job's secret: the system has no random numbers");
  }
  return secret;
}

Secret secret_of_environment() {
  const char* digits = std::getenv("DDPRUN_SECRET");
  if (digits != nullptr && *digits != '\0') return from_hex(digits, "DDPRUN_SECRET");
  const char* path = std::getenv("DDPRUN_SECRET_FILE");
  return path != nullptr && *path != '\0' ? secret_in_file(path) : Secret();
}

std::string to_hex(const std::string& bytes) {
  return boost::algorithm::hex_lower(bytes);
}

Secret from_hex(const std::string& digits, const std::string& origin) try {
  // The message must not contain the digits.
  if (digits.size() != 2 * kSecretBytes) {
    refuse_secret(origin, "has " + std::to_string(digits.size()) + " characters: expected 64 hexadecimal digits");
  }
  return boost::algorithm::unhex(digits);
} catch (const boost::algorithm::hex_decode_error&) {
  refuse_secret(origin, "is not hexadecimal");
}

}  // namespace ddprun::launch
