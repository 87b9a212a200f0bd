// Small whole files: written aside and linked into place, so that a reader sees a whole file or none.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace ddprun::launch {

// Creates `folder`/`name` with `content`; the file is never seen half written. An existing file stays as it is, and the
// result is std::errc::file_exists. Not synced to disk: the files of a job need not survive the machine. Any thread.
std::error_code publish(const std::string& folder, const std::string& name, std::string_view content);

// The whole file, or nothing where there is no such file. Throws std::system_error where it is there and cannot be
// read.
std::optional<std::string> read_whole(const std::string& path);

// Throws Error(rendezvous) unless `folder` is a folder of this user that no other may enter: the keys in it are
// trusted.
void require_private(const std::string& folder);

}  // namespace ddprun::launch
