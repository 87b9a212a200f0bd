#include "data/byte_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "ddprun/error.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::data {
namespace {

constexpr std::size_t read_step = 64 * 1024;
constexpr int gzip_window = 15 + 16;  // the largest window, with gzip header and trailer

}  // namespace

void fail_at(const std::string& path, std::size_t offset, const std::string& what) {
  throw InvalidDataset("root", path + ": offset " + std::to_string(offset) + ": " + what);
}

std::string find_file(const std::vector<std::string>& plain) {
  std::string other;
  for (const std::string& name : plain) {
    for (const std::string& path : {name, name + ".gz"}) {
      std::error_code error;
      const auto status = std::filesystem::status(path, error);
      if (status.type() == std::filesystem::file_type::not_found) continue;
      if (error) throw InvalidDataset("root", path + ": " + error.message());
      if (status.type() == std::filesystem::file_type::regular) return path;
      if (other.empty()) other = path;
    }
  }
  if (!other.empty()) throw InvalidDataset("root", other + ": is no regular file");
  return "";
}

std::string fetch_advice(const std::string& name, const std::string& root, const std::string& default_root) {
  const std::string at = root == default_root ? "" : " --root " + root;
  return "\"ddprun data fetch " + name + at + "\" gets the files; or give the folder that they are in";
}

void check_root(const std::string& root, const std::string& advice) {
  std::error_code error;
  const auto type = std::filesystem::status(root, error).type();
  if (type == std::filesystem::file_type::directory) return;
  if (type == std::filesystem::file_type::not_found) throw InvalidDataset("root", root + ": no such folder; " + advice);
  throw InvalidDataset("root", root + ": " + (error ? error.message() : "is no folder; give the folder that it is in"));
}

ByteFile::ByteFile(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "rbe"), std::fclose) {
  if (!file_) throw InvalidDataset("root", path + ": cannot open: " + std::strerror(errno));
  refill();
  packed_ = stream_.avail_in >= 2 && buffer_[0] == 0x1f && buffer_[1] == 0x8b;
  if (packed_ && inflateInit2(&stream_, gzip_window) != Z_OK) {
    throw Error(ExitCode::failure, path + ": out of memory for unpacking");
  }
}

ByteFile::~ByteFile() {
  if (packed_) inflateEnd(&stream_);
}

void ByteFile::read(std::size_t count, std::vector<uint8_t>& out) {
  while (count > 0) {
    const std::size_t old_size = out.size();
    out.resize(old_size + std::min(count, read_step));
    uint8_t* const place = out.data() + old_size;
    const std::size_t free_bytes = out.size() - old_size;
    const std::size_t got = packed_ ? read_packed(place, free_bytes) : read_plain(place, free_bytes);
    out.resize(old_size + got);
    if (got == 0) return;
    count -= got;
  }
}

std::size_t ByteFile::read_plain(uint8_t* out, std::size_t count) {
  if (stream_.avail_in == 0) refill();
  const std::size_t got = std::min<std::size_t>(count, stream_.avail_in);
  std::memcpy(out, stream_.next_in, got);
  stream_.next_in += got;
  stream_.avail_in -= static_cast<uInt>(got);
  return got;
}

std::size_t ByteFile::read_packed(uint8_t* out, std::size_t count) {
  stream_.next_out = out;
  stream_.avail_out = static_cast<uInt>(count);
  while (true) {
    if (stream_.avail_in == 0) refill();
    if (member_done_) {
      if (stream_.avail_in == 0) return 0;
      inflateReset(&stream_);
      member_done_ = false;
    }
    if (stream_.avail_in == 0) fail_packed("the gzip data ends early; fetch the file again");
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END) {
      const char* reason = stream_.msg != nullptr ? stream_.msg : "a dictionary is missing";
      fail_packed(std::string("the gzip data is damaged (") + reason + "); fetch the file again");
    }
    member_done_ = status == Z_STREAM_END;
    if (stream_.avail_out < count) return count - stream_.avail_out;
  }
}

void ByteFile::refill() {
  errno = 0;
  const std::size_t got = std::fread(buffer_.data(), 1, buffer_.size(), file_.get());
  if (got == 0 && std::ferror(file_.get())) {
    throw InvalidDataset("root", path_ + ": offset " + std::to_string(file_read_) + ": " + std::strerror(errno));
  }
  file_read_ += got;
  stream_.next_in = buffer_.data();
  stream_.avail_in = static_cast<uInt>(got);
}

void ByteFile::fail_packed(const std::string& what) const {
  const std::size_t offset = file_read_ - stream_.avail_in;
  throw InvalidDataset("root", path_ + ": offset " + std::to_string(offset) + " of the packed file: " + what);
}

}  // namespace ddprun::data
