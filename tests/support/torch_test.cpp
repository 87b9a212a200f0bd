// Only the owner of the precompiled header for tests that use Torch.
#include "support/torch_test.hpp"
