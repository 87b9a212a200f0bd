/* A shared library that is no plugin. */
int ddprun_fake_nothing(void);
__attribute__((visibility("default"))) int ddprun_fake_nothing(void) {
  return 0;
}
