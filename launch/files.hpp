// Small files that appear atomically: written under a temporary name, then linked, so that a reader sees a complete
// file or none.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace ddprun::launch {

// Creates `folder`/`name` with `content` atomically. An existing file does not change, and the result is
// std::errc::file_exists. Not synced to disk, because a job's files need not survive the machine. Thread-safe.
std::error_code publish(const std::string& folder, const std::string& name, std::string_view content);

// The content of a file, or nothing if it does not exist. Throws std::system_error if it exists but cannot be read.
std::optional<std::string> read_whole(const std::string& path);

// Throws Error(rendezvous) unless `folder` belongs to this user and no one else can access it, because the keys in it
// are trusted.
void require_private(const std::string& folder);

}  // namespace ddprun::launch
