#include <algorithm>
#include <map>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun {
namespace detail {

bool is_raised(const int32_t* abort_flag) noexcept {
  return abort_flag != nullptr && __atomic_load_n(abort_flag, __ATOMIC_ACQUIRE) != 0;
}

Options options_of(const ddprun_comm_host& host, const std::string& name, OptionSpecs specs) {
  std::map<std::string, std::string> given;
  for (uint32_t i = 0; i < host.option_count; ++i) given[host.options[i].key] = host.options[i].value;
  try {
    return Options("backend \"" + name + '"', specs, given);
  } catch (const InvalidOption& error) {
    throw CommError(CommStatus::invalid,
                    "comm.options." + error.name() + " = \"" + given[error.name()] + "\": " + error.what());
  }
}

}  // namespace detail

CommBackend::CommBackend(const Host& host) : CommBackend(host.rank(), host.size(), host.name(), host.capabilities()) {}

Host::Host(const ddprun_comm_host& host, std::string name, Capabilities capabilities, OptionSpecs options)
    : name_(std::move(name)),
      capabilities_(std::move(capabilities)),
      rank_(host.rank),
      size_(host.size),
      device_(host.device),
      deterministic_(host.deterministic != 0),
      deadline_(host.deadline_ms),
      algorithm_(host.algorithm),
      address_(host.address != nullptr ? host.address : ""),
      options_(detail::options_of(host, name_, options)),
      context_(host.context),
      abort_flag_(host.abort_flag),
      log_(host.log),
      allgather_(host.allgather) {}

void Host::log(int32_t level, const std::string& message) const noexcept {
  if (log_ != nullptr) log_(context_, level, message.c_str());
}

bool Host::aborted() const noexcept {
  return detail::is_raised(abort_flag_);
}

void Host::allgather(const void* send, uint64_t bytes, void* recv) const {
  const ddprun_status status = allgather_(context_, send, bytes, recv);
  if (status != DDPRUN_OK)
    throw CommError(static_cast<CommStatus>(status), "the ranks could not exchange data while joining");
}

std::vector<std::string> Host::allgather(const std::string& mine) const {
  const auto ranks = static_cast<std::size_t>(size_);
  const uint64_t length = mine.size();
  std::vector<uint64_t> lengths(ranks);
  allgather(&length, sizeof length, lengths.data());

  const uint64_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::string padded = mine;
  padded.resize(longest);
  std::string all(longest * ranks, '\0');
  if (longest > 0) allgather(padded.data(), longest, all.data());

  std::vector<std::string> texts;
  for (std::size_t i = 0; i < ranks; ++i) texts.push_back(all.substr(i * longest, lengths[i]));
  return texts;
}

void Host::fail_together(const std::string& why) const {
  const std::vector<std::string> all = allgather(why);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].empty()) throw CommError(CommStatus::internal, "rank " + std::to_string(rank) + ": " + all[rank]);
  }
}

}  // namespace ddprun
