#include "ddp/share.hpp"

#include <c10/util/StringUtil.h>
#include <torch/torch.h>

#include "base/subprocess.hpp"
#include "launch/rendezvous.hpp"
#include "train/device/cuda.hpp"

namespace ddprun::ddp {
namespace {

// One line per tensor: "fc.weight" float [10, 3] requires_grad.
std::string describe(const std::vector<train::NamedTensor>& tensors) {
  std::string text;
  for (const auto& [name, tensor] : tensors) {
    text += '"' + name + "\" " + form_of(tensor) + (tensor.requires_grad() ? " requires_grad\n" : "\n");
  }
  return text;
}

}  // namespace

Error current_error() {
  try {
    throw;
  } catch (const c10::Error& error) {
    return {ExitCode::failure, train::error_message(error)};
  } catch (...) {
    return ddprun::current_error();
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

void throw_first(const comm::Group& ranks, const std::optional<Error>& mine) {
  // The exit code as a character, then the message.
  const std::string text = mine ? static_cast<char>(mine->code()) + std::string(mine->what()) : "";
  for (const std::string& one : ranks.gather(text)) {
    if (!one.empty()) throw Error(static_cast<ExitCode>(one[0]), one.substr(1));
  }
}

std::string form_of(const torch::Tensor& tensor) {
  const std::string text = c10::str(tensor.scalar_type(), ' ', tensor.sizes());
  return tensor.is_contiguous() ? text : c10::str(text, " with strides ", tensor.strides());
}

void require_same_lines(const comm::Group& ranks, const std::string& what, const std::string& lines) {
  const std::vector<std::string> texts = ranks.gather(lines);
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    const auto found = launch::first_difference(texts[0], texts[rank]);
    throw Error(ExitCode::rendezvous, "the ranks have different " + what + ": rank 0 has " + found.a + " where rank " +
                                          std::to_string(rank) + " has " + found.b +
                                          "; construct the same on all ranks");
  }
}

void require_same_tensors(const comm::Group& ranks, const std::vector<train::NamedTensor>& tensors) {
  require_same_lines(ranks, "models", describe(tensors));
}

}  // namespace ddprun::ddp
