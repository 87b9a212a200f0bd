#include <algorithm>
#include <system_error>
#include <thread>

#include "ddprun/error.hpp"
#include "launch/failure.hpp"
#include "launch/job_folder.hpp"
#include "launch/net/secret.hpp"
#include "launch/rendezvous.hpp"

namespace ddprun::launch {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::chrono::microseconds kLongestPause{1000};  // between two tests for a key

// Hexadecimal digits: a key may have a '/'. No other file in the job's folder has such a name.
std::string file_name(const std::string& key) {
  return "key." + to_hex(key);
}

class FolderStore : public Store {
 public:
  explicit FolderStore(std::string folder) : folder_(std::move(folder)) { require_private(folder_); }

  void set(const std::string& key, std::string_view value) override {
    const std::error_code error = publish(folder_, file_name(key), value);
    if (error == std::errc::file_exists) {
      throw Error(ExitCode::rendezvous, "store: the key \"" + key + "\" is set already; each is set once per job");
    }
    if (error) {
      throw Error(ExitCode::rendezvous, "store: cannot keep the key \"" + key + "\" (" + std::to_string(value.size()) +
                                            " bytes) in " + folder_ + ": " + error.message());
    }
  }

  std::optional<std::string> get(const std::string& key, milliseconds timeout) override {
    const std::string path = folder_ + "/" + file_name(key);
    const auto begin = Clock::now();
    for (std::chrono::microseconds pause{50};; pause = std::min(2 * pause, kLongestPause)) {
      const auto failure = first_failure(folder_);
      // After the check for a failure, so that a key set before the failure is found.
      if (auto value = read_whole(path)) return value;
      if (failure) {  // the launcher reports the first cause; this is a consequence
        throw Error(ExitCode::peer, "rank " + std::to_string(failure->rank) + " failed while this one waited for \"" +
                                        key + "\": " + failure->message);
      }
      const auto waited = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
      if (waited >= timeout) break;
      std::this_thread::sleep_for(std::min<std::chrono::microseconds>(pause, timeout - waited));
    }
    require_private(folder_);  // a folder that is gone is an error
    return std::nullopt;
  }

 private:
  const std::string folder_;
};

}  // namespace

std::unique_ptr<Store> folder_store(const std::string& folder) {
  return std::make_unique<FolderStore>(folder);
}

}  // namespace ddprun::launch
