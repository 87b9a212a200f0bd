#include "ddp/same_tensors.hpp"

#include <sstream>
#include <string>

#include "ddp/share.hpp"
#include "ddprun/error.hpp"

namespace ddprun::ddp {
namespace {

// One line per tensor: "fc.weight" float [10, 3] requires_grad.
std::string describe(const std::vector<train::NamedTensor>& tensors) {
  std::ostringstream text;
  for (const train::NamedTensor& item : tensors) {
    text << '"' << item.name << "\" " << form_of(item.tensor);
    if (item.tensor.requires_grad()) text << " requires_grad";
    text << '\n';
  }
  return text.str();
}

// The lines that differ first; "nothing" past the end.
std::pair<std::string, std::string> difference(const std::string& a, const std::string& b) {
  std::istringstream lines_of_a(a), lines_of_b(b);
  while (true) {
    std::string line_of_a, line_of_b;
    if (!std::getline(lines_of_a, line_of_a)) line_of_a = "nothing";
    if (!std::getline(lines_of_b, line_of_b)) line_of_b = "nothing";
    if (line_of_a != line_of_b) return {line_of_a, line_of_b};
  }
}

}  // namespace

std::string form_of(const torch::Tensor& tensor) {
  std::ostringstream text;
  text << c10::toString(tensor.scalar_type()) << ' ' << tensor.sizes();
  if (!tensor.is_contiguous()) text << " with strides " << tensor.strides();
  return text.str();
}

void require_same_lines(CommBackend& backend, const std::string& what, const std::string& lines,
                        std::chrono::milliseconds timeout) {
  const std::vector<std::string> texts = gather_texts(backend, lines, timeout);
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    const auto [first, other] = difference(texts[0], texts[rank]);
    throw Error(ExitCode::rendezvous, "the ranks have different " + what + ": rank 0 has " + first + " where rank " +
                                          std::to_string(rank) + " has " + other + "; construct the same on all ranks");
  }
}

void require_same_tensors(CommBackend& backend, const std::vector<train::NamedTensor>& tensors,
                          std::chrono::milliseconds timeout) {
  require_same_lines(backend, "models", describe(tensors), timeout);
}

}  // namespace ddprun::ddp
