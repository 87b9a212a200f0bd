/* ddprun/plugin/option_spec.h: how a plugin of any kind declares its options, in C: the entries of comm.options,
 * model.options or data.options that it takes. ddprun declares the keys of its config in the same way.
 *
 * A plugin that declares its options never gets another option, nor a value that its declaration does not allow: ddprun
 * refuses them before it calls the plugin, with their place in the config. `ddprun plugins --verbose` prints them.
 * In C++, options.hpp has a function for each type.
 */
#ifndef DDPRUN_OPTION_SPEC_H
#define DDPRUN_OPTION_SPEC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the text of a value must be. */
enum {
  DDPRUN_OPTION_TEXT = 0,     /* any text */
  DDPRUN_OPTION_CHOICE = 1,   /* one of `choices` */
  DDPRUN_OPTION_INTEGER = 2,  /* "-64": a whole number of 64 bits */
  DDPRUN_OPTION_REAL = 3,     /* "0.1", "1e-3": a finite number */
  DDPRUN_OPTION_FLAG = 4,     /* "true" or "false" */
  DDPRUN_OPTION_DURATION = 5, /* "30s", "1.5h": a decimal number, from 0, with its unit: ns, us, ms, s, m or h */
  DDPRUN_OPTION_SIZE = 6,     /* "4096", "64KiB": a whole number of B (or no unit), KiB, MiB, GiB or TiB */
  DDPRUN_OPTION_NAME = 7,     /* any text of at least one character */
  DDPRUN_OPTION_PART = 8,     /* of a whole: "0.1", a fraction above 0 and below 1, or "500", a whole number */
  DDPRUN_OPTION_TYPE_COUNT = 9
};

/* Bits of `open`. */
enum {
  DDPRUN_OPTION_ABOVE_LEAST = 1, /* `least` itself is not allowed */
  DDPRUN_OPTION_BELOW_MOST = 2   /* `most` itself is not allowed */
};

/* One option. The texts belong to the plugin and live as long as it. */
typedef struct ddprun_option_spec {
  uint32_t struct_size;
  int32_t type;  /* DDPRUN_OPTION_... */
  int32_t list;  /* 0: one value; 1: one or several, with commas between them; n above 1: exactly n */
  uint32_t open; /* 0, or DDPRUN_OPTION_ABOVE_LEAST, ... */
  const char* name;
  const char* meaning;       /* one line */
  const char* default_value; /* (optional) as it would stand in the config; null: the meaning says what is done then */
  /* (optional, of numbers, durations and sizes) The smallest and the largest value, as text. */
  const char* least;
  const char* most;
  /* "small|large": the values of a CHOICE; (optional) a word that may stand in place of a number, duration or size */
  const char* choices;
} ddprun_option_spec;

#ifdef __cplusplus
}
#endif
#endif
