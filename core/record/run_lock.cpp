#include "record/run_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "record/run_dir.hpp"

namespace ddprun::record {
namespace {

// Locks of an open file description, not of a process: those end when any descriptor of the file is closed.
struct flock whole_file(short type) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  return range;
}

}  // namespace

void lock_run(int fd) {
  struct flock range = whole_file(F_WRLCK);
  ::fcntl(fd, F_OFD_SETLK, &range);
}

bool is_under_way(const std::string& run_dir) {
  const int fd = ::open(file_in(run_dir, kEpochsFile).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  struct flock range = whole_file(F_RDLCK);
  const bool known = ::fcntl(fd, F_OFD_GETLK, &range) == 0;
  ::close(fd);
  return known && range.l_type != F_UNLCK;
}

}  // namespace ddprun::record
