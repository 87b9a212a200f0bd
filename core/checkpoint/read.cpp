// The reader: trusts nothing in a file before it is checked.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.hpp"
#include "checkpoint/internal.hpp"
#include "checkpoint/safetensors.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr int kDeepest = 2;                       // the header, a tensor, its shape

// A value of a header for a message: on one line, and short.
std::string shown(const Json& json) {
  constexpr size_t kLongest = 200;
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return printable(text.substr(0, kLongest)) + (text.size() > kLongest ? "..." : "");
}

// The position of a tensor, relative to the end of the header.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  auto operator<=>(const ByteRange&) const = default;
};
struct Entry {
  Tensor tensor;
  ByteRange range;
};

class FileSource final : public ByteSource {
 public:
  explicit FileSource(const std::string& path) : path_(path) {
    std::error_code fault;
    const auto status = std::filesystem::status(path_, fault);
    if (status.type() == std::filesystem::file_type::none) throw_file_error("read", path_, fault.value());
    if (!std::filesystem::exists(status)) throw Error(ExitCode::usage, path_ + ": no such checkpoint");
    if (!std::filesystem::is_regular_file(status)) throw Error(ExitCode::usage, path_ + ": not a file");
    size_ = std::filesystem::file_size(path_, fault);
    if (fault) throw_file_error("read", path_, fault.value());
    stream_.open(path_, std::ios::binary);
    if (!stream_) throw_file_error("open", path_, errno);
  }

  uint64_t size() const override { return size_; }
  void read(void* out, uint64_t bytes) override {
    stream_.read(static_cast<char*>(out), static_cast<std::streamsize>(bytes));
    if (!stream_) throw_file_error("read " + std::to_string(bytes) + " bytes from", path_, errno != 0 ? errno : EIO);
  }

 private:
  const std::string path_;
  std::ifstream stream_;
  uint64_t size_ = 0;
};

class Reader {
 public:
  Reader(ByteSource& source, const std::string& path, bool require_checksums)
      : source_(source), path_(path), require_checksums_(require_checksums), size_(source.size()) {}

  File read() {
    const std::string header = read_header();
    std::vector<Entry> entries = parse(header);
    check_ranges(entries);
    File file;
    file.path = path_;
    for (Entry& entry : entries) {
      read_tensor(entry);
      file.tensors.push_back(std::move(entry.tensor));
    }
    std::erase_if(metadata_, [](const auto& word) { return word.first.starts_with(kHeaderChecksumKey); });
    file.metadata = std::move(metadata_);
    return file;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { throw Error(ExitCode::usage, path_ + ": " + what); }
  [[noreturn]] void refuse_tensor(const std::string& name, const std::string& what) const {
    refuse("tensor " + quoted_name(name) + ": " + what);
  }

  std::string read_header() {
    uint64_t length = 0;
    if (size_ < sizeof length) refuse("truncated: " + std::to_string(size_) + " bytes are too few for a checkpoint");
    source_.read(&length, sizeof length);
    if (length > kLongestHeader || length > size_ - sizeof length) {
      refuse("the header's length, " + std::to_string(length) + " bytes, does not fit a file of " +
             std::to_string(size_) + " bytes: truncated, or not a safetensors file");
    }
    data_bytes_ = size_ - sizeof length - length;
    std::string header(length, '\0');
    source_.read(header.data(), length);
    const Seal seal = check_seal(header);
    if (seal == Seal::wrong) refuse("the header does not match its checksum: the file is damaged");
    if (seal == Seal::none && require_checksums_) refuse("carries no checksum: damaged, or not written by ddprun");
    return header;
  }

  std::vector<Entry> parse(const std::string& header) {
    // nlohmann keeps only one of two equal keys; the other's bytes are then a gap, which check_ranges() rejects.
    // Json copies and prints its values recursively: deeper values than the format has would overflow the stack.
    bool too_deep = false;
    const auto keep = [&](int depth, Json::parse_event_t event, const Json&) {
      const bool opens = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
      if (!opens || depth <= kDeepest) return true;
      too_deep = true;
      return false;
    };
    const Json json = Json::parse(header, keep, false);
    if (!json.is_object()) refuse("the header is not a JSON object");
    if (too_deep) refuse("the header is nested more deeply than the format allows");
    std::vector<Entry> entries;
    for (const auto& [name, value] : json.items()) {
      if (name == "__metadata__") {
        parse_metadata(value);
      } else {
        entries.push_back(parse_tensor(name, value));
      }
    }
    return entries;
  }

  void parse_metadata(const Json& json) {
    if (json.is_null()) return;  // the safetensors library reads it as no metadata
    if (!json.is_object()) refuse("__metadata__ is not a JSON object");
    for (const auto& [key, value] : json.items()) {
      if (!value.is_string()) refuse("__metadata__: " + shown(key) + " is not a string");
      metadata_[key] = value.get<std::string>();
    }
  }

  Entry parse_tensor(const std::string& name, const Json& json) const {
    if (!json.is_object() || json.size() != 3 || !json.contains("dtype") || !json.contains("shape") ||
        !json.contains("data_offsets")) {
      refuse_tensor(name, "expected dtype, shape and data_offsets");
    }
    Entry entry;
    entry.tensor.name = name;
    if (!json["dtype"].is_string()) refuse_tensor(name, "dtype is not a string");
    entry.tensor.dtype = json["dtype"].get<std::string>();
    const uint64_t bytes = parse_shape(name, json["shape"], entry.tensor);
    entry.range = parse_offsets(name, json["data_offsets"]);
    if (entry.range.end - entry.range.begin != bytes) {
      refuse_tensor(name, "shape and dtype take " + std::to_string(bytes) + " bytes, data_offsets give " +
                              std::to_string(entry.range.end - entry.range.begin));
    }
    return entry;
  }

  // Fills the shape and returns the tensor's bytes.
  uint64_t parse_shape(const std::string& name, const Json& json, Tensor& tensor) const {
    uint64_t bytes = element_size(tensor.dtype);
    if (bytes == 0) refuse_tensor(name, "unknown dtype " + shown(tensor.dtype));
    if (!json.is_array()) refuse_tensor(name, "shape is not an array");
    for (const Json& extent : json) {
      const auto* const value = extent.get_ptr<const Json::number_unsigned_t*>();  // null for any other value
      if (value == nullptr || *value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ||
          __builtin_mul_overflow(bytes, *value, &bytes)) {
        refuse_tensor(name, "impossible shape " + shown(json));
      }
      tensor.shape.push_back(static_cast<int64_t>(*value));
    }
    return bytes;
  }

  ByteRange parse_offsets(const std::string& name, const Json& json) const {
    const bool pair =
        json.is_array() && json.size() == 2 && json[0].is_number_unsigned() && json[1].is_number_unsigned();
    const ByteRange range = pair ? ByteRange{json[0].get<uint64_t>(), json[1].get<uint64_t>()} : ByteRange{};
    if (!pair || range.begin > range.end) refuse_tensor(name, "data_offsets are not [begin, end]");
    if (range.end > data_bytes_) {
      refuse_tensor(name, "ends at byte " + std::to_string(range.end) + " of " + std::to_string(data_bytes_) +
                              " bytes of data: the file is truncated");
    }
    return range;
  }

  void check_ranges(std::vector<Entry>& entries) const {
    std::ranges::stable_sort(entries, {}, &Entry::range);
    uint64_t expected = 0;
    for (const Entry& entry : entries) {
      if (entry.range.begin != expected) refuse_tensor(entry.tensor.name, "a gap or an overlap before its bytes");
      expected = entry.range.end;
    }
    if (expected != data_bytes_) {
      refuse("holds " + std::to_string(data_bytes_) + " bytes of data where its tensors take " +
             std::to_string(expected));
    }
  }

  // Called in the order of positions, which are contiguous: the source is always at the start of the tensor.
  void read_tensor(Entry& entry) {
    Tensor& tensor = entry.tensor;
    tensor.data.resize(entry.range.end - entry.range.begin);
    source_.read(tensor.data.data(), tensor.data.size());
    const auto checksum = metadata_.find(kTensorChecksumPrefix + tensor.name);
    if (checksum == metadata_.end()) {
      if (require_checksums_) refuse_tensor(tensor.name, "carries no checksum");
    } else if (checksum->second != checksum_of(tensor.data.data(), tensor.data.size())) {
      refuse_tensor(tensor.name, "its bytes do not match its checksum: the file is damaged");
    }
  }

  ByteSource& source_;
  const std::string& path_;
  const bool require_checksums_;
  const uint64_t size_;
  uint64_t data_bytes_ = 0;
  Metadata metadata_;
};

}  // namespace

std::unique_ptr<ByteSource> open_file(const std::string& path) {
  return std::make_unique<FileSource>(path);
}

File read_safetensors(const std::string& path, bool require_checksums) {
  FileSource source(path);
  return read_safetensors(source, path, require_checksums);
}

File read_safetensors(ByteSource& source, const std::string& path, bool require_checksums) {
  return Reader(source, path, require_checksums).read();
}

}  // namespace ddprun::checkpoint
