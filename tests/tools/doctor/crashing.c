/* A library that ends the process that loads it. */
#include <signal.h>

__attribute__((constructor)) static void crash(void) {
  raise(SIGKILL);
}
