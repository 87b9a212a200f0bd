/* ddprun/plugin/export.h: DDPRUN_PLUGIN_EXPORT, before the definition of the one symbol that a plugin exports, in C and in
 * C++. The linker needs it only where symbols are hidden (-fvisibility=hidden). */
#ifndef DDPRUN_EXPORT_H
#define DDPRUN_EXPORT_H

#ifdef __cplusplus
#define DDPRUN_PLUGIN_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define DDPRUN_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

#endif
