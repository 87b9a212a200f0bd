#include "launch/job_output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/file.hpp"
#include "base/text.hpp"
#include "ddprun/error.hpp"

namespace ddprun::launch {
namespace {

constexpr std::size_t kLongestLine =
    1 << 20;  // a longer line is cut, so that a rank that prints no line break cannot fill memory

bool same_file(int a, int b) {
  struct stat left {
  }, right{};
  return ::fstat(a, &left) == 0 && ::fstat(b, &right) == 0 && left.st_dev == right.st_dev &&
         left.st_ino == right.st_ino;
}

std::unique_ptr<Screen> screen_on(int fd) {
  return std::make_unique<Screen>(fd, columns_of(fd));
}

UniqueFd open_log(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  if (!file) throw Error(ExitCode::failure, "cannot write the log " + path + ": " + std::strerror(errno));
  return file;
}

}  // namespace

JobOutput::JobOutput(int first, int ranks, const std::string& log_dir)
    : first_(first), out_(screen_on(STDOUT_FILENO)), partial_(static_cast<std::size_t>(ranks)) {
  if (!same_file(STDOUT_FILENO, STDERR_FILENO)) err_ = screen_on(STDERR_FILENO);
  if (log_dir.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(log_dir, error);
  if (error) throw Error(ExitCode::failure, "cannot make the log folder " + log_dir + ": " + error.message());
  for (int rank = 0; rank < ranks; ++rank) {
    logs_.push_back(open_log(log_dir + "/rank" + std::to_string(first + rank) + ".log"));
  }
}

bool JobOutput::read(int rank, Child& child) {
  const bool out = read(rank, Stream::out, child.out), err = read(rank, Stream::err, child.err);
  return out || err;
}

bool JobOutput::read(int rank, Stream stream, UniqueFd& pipe) {
  if (!pipe) return false;
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(pipe.get(), buffer.data(), buffer.size());
  if (got > 0) add_bytes(rank, stream, {buffer.data(), static_cast<std::size_t>(got)});
  if (got == 0) {
    finish(rank, stream);
    pipe.reset();
  }
  return got > 0;
}

void JobOutput::finish(int rank) {
  finish(rank, Stream::out);
  finish(rank, Stream::err);
}

void JobOutput::add_bytes(int rank, Stream stream, std::string_view bytes) {
  log(rank, bytes);
  if (first_ + rank == 0) {
    screen(stream).pass(bytes);
    return;
  }
  std::string& line = partial_[static_cast<std::size_t>(rank)].line[static_cast<std::size_t>(stream)];
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    line += bytes.substr(0, end);
    if (end == std::string_view::npos && line.size() < kLongestLine) return;
    emit(rank, stream, line);
    line.clear();
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  }
}

void JobOutput::finish(int rank, Stream stream) {
  std::string& line = partial_[static_cast<std::size_t>(rank)].line[static_cast<std::size_t>(stream)];
  if (!line.empty()) emit(rank, stream, line);
  line.clear();
}

std::vector<Screen*> JobOutput::screens() const {
  return err_ ? std::vector<Screen*>{out_.get(), err_.get()} : std::vector<Screen*>{out_.get()};
}

bool JobOutput::full() const {
  const auto all = screens();
  return std::any_of(all.begin(), all.end(), [](const Screen* screen) { return screen->full(); });
}

void JobOutput::add_to(std::vector<pollfd>& entries) const {
  for (const Screen* screen : screens()) {
    if (screen->pending()) entries.push_back({screen->fd(), POLLOUT, 0});
  }
}

void JobOutput::write_some() {
  for (Screen* screen : screens()) {
    screen->release_due(Screen::Clock::now());
    screen->write_some();
    if (screen->broken() == 0 || std::exchange(warned_, true)) continue;
    print(std::string("ddprun: warning: the output of the ranks is dropped from here on: ") +
          std::strerror(screen->broken()));
  }
}

std::string JobOutput::lost() const {
  for (const Screen* screen : screens()) {
    if (screen->broken() == 0 || screen->broken() == EPIPE) continue;
    return std::string(screen->fd() == STDOUT_FILENO ? "stdout: " : "stderr: ") + std::strerror(screen->broken());
  }
  return "";
}

void JobOutput::flush() {
  for (Screen* screen : screens()) screen->flush();
}

// Of a line that the rank redrew with carriage returns, only the last state is printed.
void JobOutput::emit(int rank, Stream stream, std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  line.remove_prefix(line.rfind('\r') + 1);
  screen(stream).line("[rank" + std::to_string(first_ + rank) + "] " + std::string(line));
}

void JobOutput::log(int rank, std::string_view bytes) {
  if (logs_.empty()) return;
  UniqueFd& file = logs_[static_cast<std::size_t>(rank)];
  const int error = file ? write_all(file.get(), bytes) : 0;
  if (error == 0) return;
  print("ddprun: warning: the log of rank " + std::to_string(first_ + rank) + " ends here: " + std::strerror(error));
  file.reset();
}

}  // namespace ddprun::launch
