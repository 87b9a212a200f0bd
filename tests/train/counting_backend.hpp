// A backend that counts the allreduces that it forwards.
#pragma once

#include "comm/call.hpp"

namespace ddprun::comm {

class CountingBackend : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  int allreduces = 0;

 protected:
  Work start(Kind kind, const Collective& call) override {
    if (kind == Kind::allreduce) ++allreduces;
    return ForwardingBackend::start(kind, call);
  }
};

}  // namespace ddprun::comm
