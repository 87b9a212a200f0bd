#include "power_sgd.hpp"

#include <ddprun/error.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace {

using ddprun::Error;
using ddprun::ExitCode;
using ddprun::GradBucket;
using ddprun::Group;
using torch::Tensor;

// Matrices are batches of one, and norms and products the same calls as PyTorch's, so that they round alike.

// Makes the columns of [1, n, rank] orthonormal, in place. A column of zeros stays zero.
void orthogonalize(const Tensor& matrix) {
  const int64_t rank = matrix.size(2);
  if (rank > 2 && matrix.element_size() > 2) {
    matrix.copy_(std::get<0>(torch::linalg_qr(matrix)));
    return;
  }
  for (int64_t i = 0; i < rank; ++i) {
    const Tensor column = matrix.narrow(2, i, 1);
    const Tensor norm = column.norm(2, 1, true);
    column.div_(torch::where(norm == 0, torch::ones_like(norm), norm));
    if (i + 1 == rank) continue;
    Tensor rest = matrix.narrow(2, i + 1, rank - i - 1);
    rest.sub_((column * rest).sum(1, true) * column);
  }
}

// One gradient as a matrix, with its factors: gradient ~ p q^T.
struct Factored {
  int64_t rows() const { return matrix.size(1); }
  int64_t columns() const { return matrix.size(2); }
  Tensor matrix;  // [1, n, m], a view of the bucket
  Tensor p, q;    // [1, n, rank], [1, m, rank]
};

// What the next step of a bucket needs.
struct Memory {
  Tensor error;  // [elements]; undefined in the first step
  Tensor p, q;   // all factors of the bucket, one after the other
};

class PowerSgd {
 public:
  explicit PowerSgd(const PowerSgdOptions& options)
      : options_(options), random_(static_cast<uint32_t>(options.random_seed)) {
    if (options.matrix_approximation_rank < 1) {
      throw Error(ExitCode::usage, "PowerSgdOptions::matrix_approximation_rank: expected at least 1");
    }
    if (options.start_iter < 2) {
      throw Error(ExitCode::usage,
                  "PowerSgdOptions::start_iter: expected at least 2, because buckets are built again after the first "
                  "step");
    }
    if (!(options.min_compression_rate > 0)) {
      throw Error(ExitCode::usage, "PowerSgdOptions::min_compression_rate: expected a number above 0");
    }
  }

  void operator()(GradBucket& bucket, const Group& group) {
    if (step_ < options_.start_iter) {
      ddprun::allreduce_hook(bucket, group);
    } else {
      average(bucket, group);
    }
    if (bucket.is_last) ++step_;
  }

 private:
  void average(GradBucket& bucket, const Group& group) {
    Memory& memory = memories_[bucket.index];
    Tensor local;  // with the error of the step before
    if (options_.use_error_feedback) {
      if (memory.error.defined()) bucket.buffer.add_(memory.error);
      local = bucket.buffer.clone();
    }
    std::vector<Tensor> whole;  // not compressed
    std::vector<Factored> factored = split(bucket, memory, whole);
    average_whole(whole, group);
    for (Factored& one : factored) torch::bmm_out(one.p, one.matrix, one.q);
    if (memory.p.numel() > 0) group.allreduce(memory.p);
    for (Factored& one : factored) {
      orthogonalize(one.p);
      torch::bmm_out(one.q, one.matrix.transpose(1, 2), one.p);
    }
    if (memory.q.numel() > 0) {
      group.allreduce(memory.q);
      memory.q.div_(group.size());
    }
    for (Factored& one : factored) torch::bmm_out(one.matrix, one.p, one.q.transpose(1, 2));
    if (options_.use_error_feedback) memory.error = local.sub_(bucket.buffer);
    if (!options_.warm_start) memory.p = memory.q = Tensor();
    // With loss scaling a step may overflow, and is skipped; its infinities must not stay. All ranks have this buffer.
    if (!std::isfinite(bucket.buffer.sum().item<double>())) memory = Memory();
  }

  std::vector<Factored> split(const GradBucket& bucket, Memory& memory, std::vector<Tensor>& whole) {
    std::vector<Factored> factored;
    int64_t size_of_p = 0, size_of_q = 0;
    for (const Tensor& gradient : bucket.gradients) {
      const int64_t rows = gradient.dim() > 0 ? gradient.size(0) : 1;
      const int64_t columns = gradient.numel() / std::max<int64_t>(rows, 1);
      const int64_t rank = std::min({rows, columns, options_.matrix_approximation_rank});
      const auto compressed = static_cast<double>((rows + columns) * rank);
      if (gradient.dim() < 1 || !gradient.is_contiguous() || gradient.is_complex() ||
          compressed * options_.min_compression_rate >= static_cast<double>(gradient.numel())) {
        whole.push_back(gradient);
        continue;
      }
      // Matrices of one shape stand together, as in PyTorch, which gives the same random numbers to each.
      const auto last = std::find_if(factored.rbegin(), factored.rend(), [&](const Factored& other) {
        return other.rows() == rows && other.columns() == columns;
      });
      factored.insert(last == factored.rend() ? factored.end() : last.base(),
                      {gradient.view({1, rows, columns}), {}, {}});
      size_of_p += rows * rank;
      size_of_q += columns * rank;
    }
    const bool first = !memory.q.defined();
    if (first) {
      memory.p = torch::empty({size_of_p}, bucket.buffer.options());
      memory.q = torch::empty({size_of_q}, bucket.buffer.options());
    }
    give_factors(factored, memory);
    if (first) {
      randomize(factored);
    }
    for (const Factored& one : factored) orthogonalize(one.q);
    return factored;
  }

  void give_factors(std::vector<Factored>& factored, const Memory& memory) const {
    int64_t at_p = 0, at_q = 0;
    const auto next = [](const Tensor& flat, int64_t& at, int64_t rows, int64_t rank) {
      const Tensor factor = flat.narrow(0, at, rows * rank).view({1, rows, rank});
      at += rows * rank;
      return factor;
    };
    for (Factored& one : factored) {
      const int64_t rows = one.rows(), columns = one.columns();
      const int64_t rank = std::min({rows, columns, options_.matrix_approximation_rank});
      one.p = next(memory.p, at_p, rows, rank);
      one.q = next(memory.q, at_q, columns, rank);
    }
  }

  // The numbers of PyTorch's hook, whose seeds are those of numpy's RandomState(random_seed).randint(1_000_000_000).
  void randomize(const std::vector<Factored>& factored) {
    uint32_t seed;
    do {
      seed = static_cast<uint32_t>(random_()) & 0x3fffffff;
    } while (seed >= 1'000'000'000);
    auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    for (const Factored& one : factored) {
      one.q.copy_(torch::randn(one.q.sizes(), generator, one.q.options().device(torch::kCPU)));
    }
  }

  const PowerSgdOptions options_;
  std::mt19937 random_;
  int64_t step_ = 0;
  std::map<int, Memory> memories_;  // by bucket

  static void average_whole(const std::vector<Tensor>& gradients, const Group& group) {
    if (gradients.empty()) return;
    std::vector<Tensor> flat;
    for (const Tensor& gradient : gradients) flat.push_back(gradient.reshape({-1}));
    const Tensor all = torch::cat(flat);
    group.allreduce(all);
    all.div_(group.size());
    int64_t at = 0;
    for (const Tensor& gradient : gradients) {
      gradient.copy_(all.narrow(0, at, gradient.numel()).view(gradient.sizes()));
      at += gradient.numel();
    }
  }
};

}  // namespace

ddprun::CommHook power_sgd_hook(const PowerSgdOptions& options) {
  return [state = std::make_shared<PowerSgd>(options)](GradBucket& bucket, const Group& group) {
    (*state)(bucket, group);
  };
}
