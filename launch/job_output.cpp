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
#include "ddprun/error.hpp"

namespace ddprun::launch {
namespace {

constexpr std::size_t kChunk = 4096;  // PIPE_BUF: how much a pipe accepts at least when poll() reports it as writable
// A longer line is printed in parts, so that a rank that prints no line break cannot fill memory.
constexpr std::size_t kLongestLine = 1 << 20;

bool same_file(int a, int b) {
  struct stat left {
  }, right{};
  return ::fstat(a, &left) == 0 && ::fstat(b, &right) == 0 && left.st_dev == right.st_dev &&
         left.st_ino == right.st_ino;
}

}  // namespace

void Screen::line(std::string_view text, bool of_rank0) {
  if (unfinished_ && !of_rank0) queue_ += redrawn_ && on_terminal_ ? "\r\x1b[K" : "\n";
  unfinished_ = redrawn_ = false;
  queue_.append(text) += '\n';
}

void Screen::part(std::string_view text) {
  queue_ += text;
  unfinished_ = true;
  redrawn_ = redrawn_ || text.find('\r') != std::string_view::npos;
}

void Screen::write_some() {
  pollfd entry{fd_, POLLOUT, 0};
  while (pending() && ::poll(&entry, 1, 0) > 0 && write_chunk(kChunk)) {
  }
}

void Screen::flush() {
  pollfd entry{fd_, POLLOUT, 0};
  while (pending()) {
    if (!write_chunk(queue_.size())) ::poll(&entry, 1, -1);  // another process made the descriptor non-blocking
  }
}

// False if nothing can be written now.
bool Screen::write_chunk(std::size_t most) {
  if (broken_ == 0) {
    const ssize_t got = ::write(fd_, queue_.data() + written_, std::min(most, queue_.size() - written_));
    if (got < 0 && errno == EINTR) return true;
    if (got < 0 && errno == EAGAIN) return false;
    if (got < 0) broken_ = errno;
    if (got > 0) written_ += static_cast<std::size_t>(got);
  }
  if (broken_ != 0) written_ = queue_.size();
  if (written_ > kMostQueued || written_ == queue_.size()) {
    queue_.erase(0, written_);
    written_ = 0;
  }
  return true;
}

JobOutput::JobOutput(int first, int ranks, const std::string& log_dir) : first_(first) {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    if (screens_.empty() || !same_file(STDOUT_FILENO, fd)) screens_.emplace_back(fd, ::isatty(fd) == 1);
  }
  for (int rank = 0; rank < ranks; ++rank) lines_.push_back({Line{screens_.front()}, Line{screens_.back()}});
  if (log_dir.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(log_dir, error);
  if (error) throw Error(ExitCode::failure, "cannot make the log folder " + log_dir + ": " + error.message());
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string path = log_dir + "/rank" + std::to_string(first + rank) + ".log";
    logs_.emplace_back(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
    if (!logs_.back()) throw Error(ExitCode::failure, "cannot write the log " + path + ": " + std::strerror(errno));
  }
}

bool JobOutput::read(int rank, Child& child) {
  auto& [of_out, of_err] = lines_[static_cast<std::size_t>(rank)];
  const bool out = read(rank, of_out, child.out), err = read(rank, of_err, child.err);
  return out || err;
}

bool JobOutput::read(int rank, Line& line, UniqueFd& pipe) {
  if (!pipe) return false;
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(pipe.get(), buffer.data(), buffer.size());
  if (got == 0) pipe.reset();
  if (got <= 0) return false;
  std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
  log(rank, bytes);
  for (std::size_t end; (end = bytes.find('\n')) != std::string_view::npos; bytes.remove_prefix(end + 1)) {
    line.text += bytes.substr(0, end);
    print_line(rank, line);
  }
  line.text += bytes;
  const bool redrawn = first_ + rank == 0 && bytes.find('\r') != std::string_view::npos;
  if (redrawn || line.text.size() >= kLongestLine) print_part(rank, line);
  return true;
}

void JobOutput::finish(int rank) {
  for (Line& line : lines_[static_cast<std::size_t>(rank)]) print_part(rank, line);
}

// Of a line that another rank than 0 redrew with carriage returns, only the last state is printed.
void JobOutput::print_line(int rank, Line& line) {
  const std::string whole = std::exchange(line.text, {});
  if (first_ + rank == 0) return line.screen.line(whole, true);
  std::string_view text = whole;
  if (text.ends_with('\r')) text.remove_suffix(1);
  text.remove_prefix(text.rfind('\r') + 1);
  line.screen.line("[rank" + std::to_string(first_ + rank) + "] " + std::string(text));
}

void JobOutput::print_part(int rank, Line& line) {
  if (line.text.empty()) return;
  if (first_ + rank != 0) return print_line(rank, line);
  line.screen.part(line.text);
  line.text.clear();
}

bool JobOutput::full() const {
  return std::any_of(screens_.begin(), screens_.end(), [](const Screen& screen) { return screen.full(); });
}

void JobOutput::add_to(std::vector<pollfd>& entries) const {
  for (const Screen& screen : screens_) {
    if (screen.pending()) entries.push_back({screen.fd(), POLLOUT, 0});
  }
}

void JobOutput::write_some() {
  for (Screen& screen : screens_) {
    screen.write_some();
    if (screen.broken() == 0 || std::exchange(warned_, true)) continue;
    print(std::string("ddprun: warning: the output of the ranks is dropped from here on: ") +
          std::strerror(screen.broken()));
  }
}

std::string JobOutput::lost() const {
  for (const Screen& screen : screens_) {
    if (screen.broken() == 0 || screen.broken() == EPIPE) continue;
    return std::string(screen.fd() == STDOUT_FILENO ? "stdout: " : "stderr: ") + std::strerror(screen.broken());
  }
  return "";
}

void JobOutput::flush() {
  for (Screen& screen : screens_) screen.flush();
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
