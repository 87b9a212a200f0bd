#include "torch_again.hpp"

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>

namespace ddprun::fake_gpu {

void Again::operator()() const {
  at::init_num_threads();  // the program's number of threads: another would change the order of sums
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  torch::jit::Stack stack = arguments_;
  op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  auto result = results_.begin();
  const auto put = [&result](const at::Tensor& made) {
    if (result->defined()) result->copy_(made);
    ++result;
  };
  for (const c10::IValue& value : stack) {
    if (value.isTensor()) put(value.toTensor());
    if (value.isTensorList()) {
      for (const at::Tensor& one : value.toTensorVector()) put(one);
    }
  }
}

}  // namespace ddprun::fake_gpu
