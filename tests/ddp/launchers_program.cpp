// A program of the library, which prints what test_launchers.cpp compares.
#include <cstdio>
#include <stdexcept>
#include <string>

#include "ddprun/group.hpp"

int main(int, char** arguments) {
  const ddprun::Group group = ddprun::init({.exit_on_error = true});
  const std::string act = arguments[1];
  if (act == "sum") {
    const torch::Tensor sum = torch::full({1}, group.rank() + 1);
    group.allreduce(sum);
    std::printf("rank %d of %d: %ld\n", group.rank(), group.size(), static_cast<long>(sum.item<int64_t>()));
  } else if (act == "threads") {
    if (group.rank() == 1) std::printf("%d threads\n", torch::get_num_threads());
  } else {
    if (group.rank() == 1) throw std::runtime_error("the disk is on fire");
    group.barrier();
  }
}
