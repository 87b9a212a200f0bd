// The functions of ddprun::Host. Included by comm_plugin.hpp only.
#pragma once

#include <algorithm>
#include <cstring>

#include "ddprun/plugin/comm_plugin.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun {
namespace detail {

inline bool is_raised(const int32_t* abort_flag) noexcept {
  return abort_flag != nullptr && __atomic_load_n(abort_flag, __ATOMIC_ACQUIRE) != 0;
}

}  // namespace detail

inline CommBackend::CommBackend(const Host& host)
    : CommBackend(host.rank(), host.size(), host.name(), host.capabilities()) {}

inline Host::Host(const ddprun_comm_host& host, std::string name, Capabilities capabilities)
    : name_(std::move(name)),
      capabilities_(std::move(capabilities)),
      rank_(host.rank),
      size_(host.size),
      device_(host.device),
      deterministic_(host.deterministic != 0),
      deadline_(host.deadline_ms),
      algorithm_(host.algorithm),
      address_(host.address != nullptr ? host.address : ""),
      context_(host.context),
      abort_flag_(host.abort_flag),
      log_(host.log),
      allgather_(host.allgather) {
  for (uint32_t i = 0; i < host.option_count; ++i) options_.emplace_back(host.options[i].key, host.options[i].value);
}

inline std::string Host::option(std::string_view key, std::string_view otherwise) const {
  for (const auto& [name, value] : options_) {
    if (name == key) return value;
  }
  return std::string(otherwise);
}

inline void Host::refuse_options_beyond(std::initializer_list<std::string_view> known) const {
  for (const auto& [name, value] : options_) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string expected = known.size() == 0
                                     ? "this backend takes none"
                                     : expected_one_of(name, std::vector<std::string>(known.begin(), known.end()));
    throw CommError(CommStatus::invalid, "unknown option comm.options." + name + ": " + expected);
  }
}

inline void Host::log(int32_t level, const std::string& message) const noexcept {
  if (log_ != nullptr) log_(context_, level, message.c_str());
}

inline bool Host::aborted() const noexcept {
  return detail::is_raised(abort_flag_);
}

inline void Host::allgather(const void* send, uint64_t bytes, void* recv) const {
  const ddprun_status status = allgather_(context_, send, bytes, recv);
  if (status != DDPRUN_OK)
    throw CommError(static_cast<CommStatus>(status), "the ranks could not exchange their addresses");
}

inline std::vector<std::string> Host::allgather(const std::string& mine) const {
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

}  // namespace ddprun
