#include "data/byte_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::data {
namespace {

constexpr std::size_t read_step = 64 * 1024;

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

ByteFile::ByteFile(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rbe"), gzclose_r) {
  if (!file_) throw InvalidDataset("root", path + ": cannot open: " + std::strerror(errno));
  gzbuffer(file_.get(), read_step);
}

void ByteFile::read(std::size_t count, std::vector<uint8_t>& out) {
  while (count > 0) {
    const std::size_t old_size = out.size();
    out.resize(old_size + std::min(count, read_step));
    const int got = gzread(file_.get(), out.data() + old_size, static_cast<unsigned>(out.size() - old_size));
    out.resize(old_size + static_cast<std::size_t>(std::max(got, 0)));
    int status = Z_OK;
    const std::string reason = gzerror(file_.get(), &status);  // with the path in front
    if (status != Z_OK && status != Z_STREAM_END) {
      const std::string place = path_ + ": offset " + std::to_string(gzoffset(file_.get()));
      const std::string why = reason.substr(path_.size() + 2);
      if (status == Z_ERRNO) throw InvalidDataset("root", place + ": " + why);
      throw InvalidDataset("root", place + " of the packed file: the gzip data " +
                                       (status == Z_BUF_ERROR ? "ends early" : "is damaged (" + why + ")") +
                                       "; fetch the file again");
    }
    if (got == 0) return;
    count -= static_cast<std::size_t>(got);
  }
}

}  // namespace ddprun::data
