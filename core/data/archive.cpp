#include "data/byte_file.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <string_view>

#include "ddprun/error.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun::data {
namespace {

constexpr std::size_t unpack_step = 64 * 1024;

// A name from an archive for a message: quoted, on one line, limited in length.
std::string quoted(std::string_view name) {
  constexpr std::size_t longest = 200;
  return '"' + printable(name.substr(0, longest)) + (name.size() > longest ? "...\"" : "\"");
}

// True if the name leads out of the folder where the archive would be unpacked.
bool leads_out(std::string_view name) {
  if (name.starts_with('/')) return true;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t slash = std::min(name.find('/', at), name.size());
    if (name.substr(at, slash - at) == "..") return true;
    at = slash + 1;
  }
  return false;
}

// libarchive parses the tar format. ByteFile decompresses, because it distinguishes damage from the end of a file, and
// counts the bytes, so that a decompression bomb is stopped early.
class TarReader {
 public:
  TarReader(const std::string& path, const ArchiveLimits& limits)
      : path_(path), limits_(limits), file_(path), archive_(archive_read_new(), archive_read_free) {
    if (!archive_) throw Error(ExitCode::failure, path + ": out of memory for reading it");
    archive_read_support_format_tar(archive_.get());
    check(archive_read_open(archive_.get(), this, nullptr, give_bytes, nullptr));
  }

  // Goes on to the next member; false after the last.
  bool next() {
    const int status = archive_read_next_header(archive_.get(), &entry_);
    if (status == ARCHIVE_EOF) return false;
    if (status != ARCHIVE_WARN) check(status);  // a warning about an attribute that is not used here
    const char* const name = archive_entry_pathname(entry_);
    if (name == nullptr) fail("holds a member whose name cannot be read");
    name_ = name;
    check_member();
    return true;
  }

  const std::string& name() const { return name_; }

  // The content of the member.
  std::vector<uint8_t> read() {
    if (archive_entry_filetype(entry_) != AE_IFREG) fail("member " + quoted(name_) + " is no regular file");
    const auto size = static_cast<std::size_t>(archive_entry_size(entry_));
    if (size > limits_.member) {
      fail("member " + quoted(name_) + " has " + std::to_string(size) + " bytes, where at most " +
           std::to_string(limits_.member) + " are read");
    }
    std::vector<uint8_t> bytes;
    bytes.reserve(size);  // allocates no physical memory before it is written to
    while (true) {
      const std::size_t before = bytes.size();
      bytes.resize(std::min(size, before + unpack_step));
      if (bytes.size() == before) return bytes;
      const la_ssize_t got = archive_read_data(archive_.get(), bytes.data() + before, bytes.size() - before);
      if (got < 0) check(ARCHIVE_FATAL);
      if (got == 0) fail("member " + quoted(name_) + " ends early; fetch the archive again");
      bytes.resize(before + static_cast<std::size_t>(got));
    }
  }

  // Reads the rest after the last member, so that the checksum at the end is verified.
  void finish() {
    while (!refill().empty()) continue;
  }

 private:
  void check_member() const {
    if (leads_out(name_)) fail("member " + quoted(name_) + " has a name that leads out of the archive's folder");
    const auto type = archive_entry_filetype(entry_);
    if (archive_entry_hardlink(entry_) != nullptr || (type != AE_IFREG && type != AE_IFDIR)) {
      fail("member " + quoted(name_) + " is a link or a device, which no data set holds");
    }
  }

  void check(int status) const {
    if (error_) std::rethrow_exception(error_);
    if (status == ARCHIVE_OK) return;
    const char* const reason = archive_error_string(archive_.get());
    fail("the archive is damaged (" + std::string(reason == nullptr ? "no reason given" : reason) +
         "); fetch it again");
  }

  [[noreturn]] void fail(const std::string& what) const { throw InvalidDataset("root", path_ + ": " + what); }

  // The next bytes of the unpacked archive; none at its end.
  const std::vector<uint8_t>& refill() {
    buffer_.clear();
    file_.read(unpack_step, buffer_);
    unpacked_ += buffer_.size();
    if (unpacked_ > limits_.total) {
      fail("unpacks to more than the " + std::to_string(limits_.total) + " bytes that are read");
    }
    return buffer_;
  }

  // A callback of libarchive: no exception may pass through it.
  static la_ssize_t give_bytes(archive*, void* self, const void** bytes) {
    auto& reader = *static_cast<TarReader*>(self);
    try {
      *bytes = reader.refill().data();
      return static_cast<la_ssize_t>(reader.buffer_.size());
    } catch (...) {
      reader.error_ = std::current_exception();
      return ARCHIVE_FATAL;
    }
  }

  const std::string path_;
  const ArchiveLimits limits_;
  ByteFile file_;
  std::vector<uint8_t> buffer_;
  std::size_t unpacked_ = 0;
  std::exception_ptr error_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
  archive_entry* entry_ = nullptr;  // owned by archive_
  std::string name_;
};

}  // namespace

std::map<std::string, std::vector<uint8_t>> read_members(const std::string& path, const std::vector<std::string>& names,
                                                         const ArchiveLimits& limits) {
  std::map<std::string, std::vector<uint8_t>> members;
  TarReader reader(path, limits);
  while (reader.next()) {
    if (std::find(names.begin(), names.end(), reader.name()) == names.end()) continue;
    if (members.contains(reader.name())) {
      throw InvalidDataset("root", path + ": holds the member " + quoted(reader.name()) + " twice");
    }
    members.emplace(reader.name(), reader.read());
  }
  reader.finish();
  return members;
}

}  // namespace ddprun::data
