#include "base/log.hpp"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <mutex>

#include "base/file.hpp"
#include "ddprun/error.hpp"

namespace ddprun::log {
namespace {

constexpr std::string_view kEraseLine = "\x1b[2K";

struct Form {
  spdlog::level::level_enum level;
  const char* prefix;
};

const Form& form_of(Level level) {
  static constexpr Form forms[] = {{spdlog::level::debug, "ddprun: debug: "},
                                   {spdlog::level::info, "ddprun: "},
                                   {spdlog::level::warn, "ddprun: warning: "},
                                   {spdlog::level::err, "ddprun: error: "}};
  return forms[static_cast<std::size_t>(level)];
}

// The status line of the terminal, and the lock of all that this process writes there.
struct Status {
  std::mutex mutex;
  int fd = -1;  // where it is shown; negative: nowhere

  void erase() {
    if (fd >= 0) write_all(fd, std::string(kEraseLine) + '\r');
    fd = -1;
  }
};

Status& status() {
  static auto* const instance = new Status;  // as the logger
  return *instance;
}

class StderrSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string text = std::string(message.payload.data(), message.payload.size()) + '\n';
    const std::lock_guard lock(status().mutex);
    status().erase();
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  void flush_() override { std::fflush(stderr); }
};

spdlog::logger& logger() {
  // Never destroyed, because threads and static destructors may still log.
  static spdlog::logger* const instance = [] {
    auto* made = new spdlog::logger("ddprun", std::make_shared<StderrSink>());
    made->set_pattern("%v");
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *instance;
}

}  // namespace

void set_level(Level level) {
  logger().set_level(form_of(level).level);
}

void also_to(const std::string& path) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    sink->set_pattern("%v");
    logger().sinks().push_back(std::move(sink));
  } catch (const spdlog::spdlog_ex& failed) {
    throw Error(ExitCode::failure, std::string("cannot write the log: ") + failed.what());
  }
}

void write(Level level, std::string_view message) {
  logger().log(form_of(level).level, "{}{}", form_of(level).prefix, message);
}

void draw_status(int fd, std::string_view text) {
  const std::lock_guard lock(status().mutex);
  status().fd = fd;
  write_all(fd, std::string(kEraseLine) + std::string(text) + '\r');
}

void erase_status() {
  const std::lock_guard lock(status().mutex);
  status().erase();
}

bool status_shown() {
  const std::lock_guard lock(status().mutex);
  return status().fd >= 0;
}

void always(std::string_view line) {
  logger().log(spdlog::level::critical, "{}", line);
}

void plain(std::string_view line) {
  logger().log(spdlog::level::info, "{}", line);
}

}  // namespace ddprun::log
