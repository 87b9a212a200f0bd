#include "base/log.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "ddprun/error.hpp"

namespace ddprun::log {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warning: return spdlog::level::warn;
    case Level::error: return spdlog::level::err;
  }
  return spdlog::level::err;
}

const char* prefix(Level level) {
  switch (level) {
    case Level::debug: return "ddprun: debug: ";
    case Level::warning: return "ddprun: warning: ";
    case Level::error: return "ddprun: error: ";
    case Level::info: break;
  }
  return "ddprun: ";
}

spdlog::logger& logger() {
  // Never destroyed, because threads and static destructors may still log.
  static spdlog::logger* const instance = [] {
    auto* made = new spdlog::logger("ddprun", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%v");
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *instance;
}

}  // namespace

void set_level(Level level) {
  logger().set_level(to_spdlog(level));
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
  logger().log(to_spdlog(level), "{}{}", prefix(level), message);
}

void always(std::string_view line) {
  logger().log(spdlog::level::critical, "{}", line);
}

void plain(std::string_view line) {
  logger().log(spdlog::level::info, "{}", line);
}

}  // namespace ddprun::log
