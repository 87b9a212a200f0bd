#include "ddp/share.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <cstdint>

#include "launch/failure.hpp"
#include "train/device/cuda.hpp"

namespace ddprun::ddp {

std::vector<std::string> gather_texts(CommBackend& backend, const std::string& mine,
                                      std::chrono::milliseconds timeout) {
  const auto ranks = static_cast<std::size_t>(backend.size());
  const auto size = static_cast<int64_t>(mine.size());
  std::vector<int64_t> sizes(ranks);
  backend.allgather({.send = &size, .recv = sizes.data(), .count = 1, .dtype = DType::int64}).wait(timeout);
  std::string padded = mine;
  padded.resize(static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end())));
  std::string all(padded.size() * ranks, '\0');
  backend.allgather({.send = padded.data(), .recv = all.data(), .count = padded.size(), .dtype = DType::uint8})
      .wait(timeout);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    texts.push_back(all.substr(rank * padded.size(), static_cast<std::size_t>(sizes[rank])));
  }
  return texts;
}

Error current_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const c10::Error& error) {
    return {ExitCode::failure, train::error_message(error)};
  } catch (const std::exception& error) {
    return {ExitCode::failure, launch::error_message(error)};
  } catch (...) {
    return {ExitCode::failure, "an exception of an unknown type"};
  }
}

std::optional<Error> error_of(const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
  } catch (const CommError&) {
    throw;
  } catch (...) {
    return current_error();
  }
}

void throw_first(CommBackend& backend, const std::optional<Error>& mine, std::chrono::milliseconds timeout) {
  // The exit code as a character, then the message.
  const std::string text = mine ? static_cast<char>(mine->code()) + std::string(mine->what()) : "";
  for (const std::string& one : gather_texts(backend, text, timeout)) {
    if (!one.empty()) throw Error(static_cast<ExitCode>(one[0]), one.substr(1));
  }
}

}  // namespace ddprun::ddp
