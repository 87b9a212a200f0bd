#include "tools/data/transfer.hpp"

#include <curl/curl.h>
#include <poll.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>

#include "base/version.hpp"

namespace ddprun::fetch {
namespace {

constexpr int kMostRedirects = 10;

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
  Request(const std::string& url, PartFile& part, int64_t bytes, const Limits& limits, Stop& stop,
          const OnBytes& on_bytes)
      : part_(part), bytes_(bytes), asked_from_(part.bytes()), file_(is_file(url)), stop_(stop), on_bytes_(on_bytes) {
    static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
    easy_.reset(curl_easy_init());
    if (initialised != CURLE_OK || !easy_) throw Error(ExitCode::failure, "libcurl does not start");
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
    set(CURLOPT_WRITEFUNCTION, &Request::on_body);
    set(CURLOPT_WRITEDATA, this);
    // Not CURLOPT_RESUME_FROM: with it, libcurl fails if a server sends the whole file instead.
    if (asked_from_ > 0) set(CURLOPT_RANGE, (std::to_string(asked_from_) + "-").c_str());
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &Request::on_progress);
    set(CURLOPT_XFERINFODATA, this);
  }

  Ending run() {
    const CURLcode code = curl_easy_perform(easy_.get());
    on_bytes_(part_.bytes());
    if (fault_) std::rethrow_exception(fault_);
    if (code == CURLE_ABORTED_BY_CALLBACK) return {Ending::Kind::stopped, ""};
    return judge(code);
  }

 private:
  template <typename Value>
  void set(CURLoption option, Value value) {
    if (const CURLcode code = curl_easy_setopt(easy_.get(), option, value); code != CURLE_OK) {
      throw Error(ExitCode::failure, std::string("libcurl: ") + curl_easy_strerror(code));
    }
  }

  template <typename Value>
  Value get(CURLINFO what, Value otherwise) const {
    curl_easy_getinfo(easy_.get(), what, &otherwise);
    return otherwise;
  }

  long status() const { return get(CURLINFO_RESPONSE_CODE, 0L); }

  // Also called while nothing comes, once a second. Another result than 0 ends the request.
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    auto& request = *static_cast<Request*>(self);
    request.on_bytes_(request.part_.bytes());
    return request.stop_.asked() ? 1 : 0;
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

  // Of the content, as its Content-Range header has it: "bytes 100-199/200".
  struct Range {
    long long first = -1;
    long long total = -1;  // -1: "*"
  };
  Range range() const {
    Range range;
    long long last = 0;
    curl_header* header = nullptr;
    const bool there = curl_easy_header(easy_.get(), "content-range", 0, CURLH_HEADER, -1, &header) == CURLHE_OK;
    if (!there || std::sscanf(header->value, "bytes %lld-%lld/%lld", &range.first, &last, &range.total) < 2) return {};
    return range;
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
      const auto [first, total] = range();
      if (first != part_.bytes()) return refuse("it sends a range that was not requested");
      if (total >= 0 && total != bytes_) return refuse_size(total);
    } else if (!file_ && part_.bytes() > 0) {
      part_.restart();
    }
    const auto announced = get(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, curl_off_t{-1});
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
      const bool connected = get(CURLINFO_CONNECT_TIME_T, curl_off_t{0}) > 0;  // microseconds
      return {kind_of(code, connected), words_[0] != '\0' ? words_ : curl_easy_strerror(code)};
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
  Stop& stop_;
  const OnBytes& on_bytes_;
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> easy_{nullptr, curl_easy_cleanup};
  char words_[CURL_ERROR_SIZE] = {};
  bool began_ = false;
  bool error_page_ = false;
  std::string refusal_;
  std::exception_ptr fault_;
};

}  // namespace

std::string word(ExitCode code) {
  return code == ExitCode::interrupted ? "interrupted" : "terminated";
}

std::optional<ExitCode> Stop::asked() {
  for (auto signal = signals_.next(); signal; signal = signals_.next()) {
    if (asked_) continue;
    if (*signal == SIGINT) asked_ = ExitCode::interrupted;
    if (*signal == SIGTERM || *signal == SIGUSR1) asked_ = ExitCode::terminated;
  }
  return asked_;
}

void Stop::check() {
  if (const auto code = asked()) throw Error(*code, word(*code));
}

std::optional<ExitCode> Stop::within(std::chrono::milliseconds time) {
  if (asked()) return asked_;
  pollfd polled{signals_.fd(), POLLIN, 0};
  ::poll(&polled, 1, static_cast<int>(time.count()));
  return asked();
}

Ending transfer(const std::string& url, PartFile& part, int64_t bytes, const Limits& limits, Stop& stop,
                const OnBytes& on_bytes) {
  return Request(url, part, bytes, limits, stop, on_bytes).run();
}

}  // namespace ddprun::fetch
