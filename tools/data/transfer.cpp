#include "tools/data/transfer.hpp"

#include <curl/curl.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>

#include "base/version.hpp"

namespace ddprun::fetch {
namespace {

constexpr int kMostRedirects = 10;
constexpr std::chrono::milliseconds kLook{250};

struct EasyCleanup {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiCleanup {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};

// The content of a Content-Range header: "bytes 100-199/200".
struct ContentRange {
  long long first = -1;
  long long last = -1;
  long long total = -1;  // -1: "*"
};

std::optional<ContentRange> read_content_range(std::string_view header) {
  constexpr std::string_view name = "content-range:";
  if (header.size() < name.size() || ::strncasecmp(header.data(), name.data(), name.size()) != 0) return std::nullopt;
  const std::string value(header.substr(name.size()));
  ContentRange range;
  if (std::sscanf(value.c_str(), " bytes %lld-%lld/%lld", &range.first, &range.last, &range.total) < 2) {
    return ContentRange{};
  }
  return range;
}

// An HTTP status after which the same request may soon succeed (RFC 9110, and RFC 6585 for 429).
bool is_transient(long status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

// With file: there is no header that distinguishes the file's size from a range's.
bool is_file(const std::string& url) {
  return ::strncasecmp(url.c_str(), "file:", 5) == 0;
}

Ending::Kind kind_of(CURLcode code, bool connected) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT: return Ending::Kind::unreachable;
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return Ending::Kind::cut;
    case CURLE_OPERATION_TIMEDOUT: return connected ? Ending::Kind::cut : Ending::Kind::unreachable;
    default: return Ending::Kind::failed;
  }
}

class Request {
 public:
  Request(const std::string& url, PartFile& part, int64_t bytes, const Limits& limits)
      : part_(part), bytes_(bytes), asked_from_(part.bytes()), file_(is_file(url)) {
    static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
    easy_.reset(curl_easy_init());
    multi_.reset(curl_multi_init());
    if (initialised != CURLE_OK || !easy_ || !multi_) throw Error(ExitCode::failure, "libcurl does not start");
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https,file");
    set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, static_cast<long>(kMostRedirects));
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits.connect.count()));
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(limits.stall.count()));
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_USERAGENT, (std::string("ddprun/") + version()).c_str());
    set(CURLOPT_ERRORBUFFER, words_);
    set(CURLOPT_HEADERFUNCTION, &Request::on_header);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_WRITEFUNCTION, &Request::on_body);
    set(CURLOPT_WRITEDATA, this);
    // Not CURLOPT_RESUME_FROM: with it, libcurl fails if a server sends the whole file instead.
    if (asked_from_ > 0) set(CURLOPT_RANGE, (std::to_string(asked_from_) + "-").c_str());
    curl_multi_add_handle(multi_.get(), easy_.get());
  }
  ~Request() { curl_multi_remove_handle(multi_.get(), easy_.get()); }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  Ending run(Stop& stop, const OnBytes& on_bytes) {
    curl_waitfd signals{static_cast<curl_socket_t>(stop.fd()), CURL_WAIT_POLLIN, 0};
    for (int running = 1; running > 0;) {
      if (const CURLMcode code = curl_multi_perform(multi_.get(), &running); code != CURLM_OK) {
        return {Ending::Kind::failed, curl_multi_strerror(code)};
      }
      on_bytes(part_.bytes());
      if (running > 0) curl_multi_poll(multi_.get(), &signals, 1, static_cast<int>(kLook.count()), nullptr);
      if (stop.asked()) return {Ending::Kind::stopped, ""};
    }
    if (fault_) std::rethrow_exception(fault_);
    return judge(result());
  }

 private:
  template <typename Value>
  void set(CURLoption option, Value value) {
    if (const CURLcode code = curl_easy_setopt(easy_.get(), option, value); code != CURLE_OK) {
      throw Error(ExitCode::failure, std::string("libcurl: ") + curl_easy_strerror(code));
    }
  }

  CURLcode result() {
    int left = 0;
    const CURLMsg* message = curl_multi_info_read(multi_.get(), &left);
    return message == nullptr ? CURLE_FAILED_INIT : message->data.result;
  }

  long status() const {
    long status = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    return status;
  }

  bool connected() const {
    curl_off_t microseconds = 0;  // until connected; 0: never
    curl_easy_getinfo(easy_.get(), CURLINFO_CONNECT_TIME_T, &microseconds);
    return microseconds > 0;
  }

  static size_t on_header(char* line, size_t, size_t size, void* self) {
    auto& request = *static_cast<Request*>(self);
    const std::string_view text(line, size);
    if (text.starts_with("HTTP/")) request.range_ = {};  // a new answer, after a redirection
    if (const auto range = read_content_range(text)) request.range_ = *range;
    return size;
  }

  static size_t on_body(char* data, size_t, size_t size, void* self) {
    auto& request = *static_cast<Request*>(self);
    try {
      return request.take(data, size) ? size : CURL_WRITEFUNC_ERROR;
    } catch (...) {
      request.fault_ = std::current_exception();  // libcurl is C: nothing may throw through it
      return CURL_WRITEFUNC_ERROR;
    }
  }

  // False ends the request; refusal_ or the status then has the reason.
  bool take(const char* data, size_t size) {
    // An error page is not needed, and it may have no end.
    error_page_ = !file_ && status() != 200 && status() != 206;
    if (error_page_) return false;
    if (!began_ && !begin()) return false;
    if (static_cast<int64_t>(size) > bytes_ - part_.bytes()) {
      part_.restart();
      return refuse("it sends more than the " + std::to_string(bytes_) + " bytes that the file has");
    }
    part_.append(data, size);
    return true;
  }

  // At the first byte of the body: does the answer match the request?
  bool begin() {
    began_ = true;
    if (!file_ && status() == 206) {
      if (range_.first != part_.bytes()) return refuse("it sends a range that was not requested");
      if (range_.total >= 0 && range_.total != bytes_) return refuse_size(range_.total);
    } else if (!file_ && part_.bytes() > 0) {
      part_.restart();
    }
    curl_off_t announced = -1;
    curl_easy_getinfo(easy_.get(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced);
    if (announced >= 0 && announced != bytes_ - part_.bytes()) return refuse_size(part_.bytes() + announced);
    return true;
  }

  bool refuse(const std::string& why) {
    refusal_ = why;
    return false;
  }
  bool refuse_size(long long announced) {
    return refuse("it offers " + std::to_string(announced) + " bytes, and the file has " + std::to_string(bytes_));
  }

  Ending judge(CURLcode code) {
    using Kind = Ending::Kind;
    if (!refusal_.empty()) return {Kind::failed, refusal_};
    if (code != CURLE_OK && !error_page_) {
      return {kind_of(code, connected()), words_[0] != '\0' ? words_ : curl_easy_strerror(code)};
    }
    if (status() == 416 && asked_from_ > 0) {
      part_.restart();
      return {Kind::cut, "HTTP 416: it has nothing after byte " + std::to_string(asked_from_)};
    }
    if (!file_ && status() != 200 && status() != 206) {
      return {is_transient(status()) ? Kind::cut : Kind::failed, "HTTP " + std::to_string(status())};
    }
    if (part_.bytes() < bytes_) {
      return {file_ ? Kind::failed : Kind::cut,
              "it ends after " + std::to_string(part_.bytes()) + " of " + std::to_string(bytes_) + " bytes"};
    }
    return {};
  }

  PartFile& part_;
  const int64_t bytes_;
  const int64_t asked_from_;
  const bool file_;
  std::unique_ptr<CURLM, MultiCleanup> multi_;
  std::unique_ptr<CURL, EasyCleanup> easy_;
  char words_[CURL_ERROR_SIZE] = {};
  ContentRange range_;
  bool began_ = false;
  bool error_page_ = false;
  std::string refusal_;
  std::exception_ptr fault_;
};

}  // namespace

Ending transfer(const std::string& url, PartFile& part, int64_t bytes, const Limits& limits, Stop& stop,
                const OnBytes& on_bytes) {
  return Request(url, part, bytes, limits).run(stop, on_bytes);
}

}  // namespace ddprun::fetch
