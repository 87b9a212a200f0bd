// kernel.cu and the headers that it includes, as text at build time.
#pragma once

namespace ddprun::ucx_backend {

extern const char kKernelText[];
extern const char kCommPluginText[];  // ddprun/plugin/comm_plugin.h
extern const char kExportText[];      // ddprun/plugin/export.h
extern const char kOptionSpecText[];  // ddprun/plugin/option_spec.h
extern const char kFloat16Text[];     // reduction/float16.hpp

}  // namespace ddprun::ucx_backend
